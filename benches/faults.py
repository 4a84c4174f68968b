#!/usr/bin/env python3
"""Runs `anonymize run` against an S3-compatible server through a proxy that does one thing wrong at a time, and on a disk
that is too small.

    python3 benches/faults.py --s3 http://127.0.0.1:5555      (e.g. moto)
    python3 benches/faults.py --disk                          (as root: mounts small tmpfs)

The program and credentials are found as in kill.py. Every run must end with a complete release, in which `anonymize audit`
finds what the job asked for, or with an error and nothing visible.
"""
import argparse, hashlib, http.client, http.server, json, os, random, shutil, subprocess, sys, tempfile, threading, time
from urllib.parse import urlparse

from kill import JOB, Local, S3, attained, environment, program, stamp, visible


def proxy(server, fault, rate, seed):
    """A server that passes requests on, and does `fault` to a share of the answers."""
    target = urlparse(server)
    chance = random.Random(seed)
    lock = threading.Lock()
    done = {"requests": 0, "faults": 0}

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def pass_on(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            with lock:
                done["requests"] += 1
                hit = chance.random() < rate
                done["faults"] += hit
            if hit and fault == "500":
                return self.answer(500, [], b"<Error><Code>InternalError</Code></Error>")
            if hit and fault == "503":
                return self.answer(503, [], b"<Error><Code>SlowDown</Code></Error>")
            if hit and fault == "slow":
                time.sleep(2)
            upstream = http.client.HTTPConnection(target.hostname, target.port, timeout=60)
            headers = {k: v for k, v in self.headers.items() if k.lower() != "connection"}
            upstream.request(self.command, self.path, body, headers)
            got = upstream.getresponse()
            data = got.read()
            if hit and fault == "lost":  # The server did it, and nobody hears of it.
                self.close_connection = True
                return self.connection.close()
            if hit and fault == "truncate" and self.command == "GET" and len(data) > 10:
                self.send_response(got.status)
                for name, value in got.getheaders():
                    if name.lower() not in ("transfer-encoding", "connection"):
                        self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data[: len(data) // 2])
                self.close_connection = True
                return self.connection.close()
            return self.answer(got.status, got.getheaders(), data)

        def answer(self, status, headers, data):
            self.send_response(status)
            skipped = ("transfer-encoding", "connection", "content-length", "date", "server")
            for name, value in headers:
                if name.lower() not in skipped:
                    self.send_header(name, value)
            length = len(data)
            if self.command == "HEAD":
                length = next((v for n, v in headers if n.lower() == "content-length"), 0)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = pass_on

    listening = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    return listening, f"http://127.0.0.1:{listening.server_address[1]}", done


def outcome(place, job, folder, env, direct):
    """Runs the job; `direct` is the environment in which nothing goes wrong."""
    started = time.time()
    done = subprocess.run([program(), "run", job], cwd=folder, capture_output=True, text=True, env=env, timeout=600)
    seconds = time.time() - started
    manifest = visible(place)
    if done.returncode == 0:
        assert manifest, "success without a release"
        attained(place, manifest, direct)
        said = "published, complete and verified"
    else:
        unknown = "it is not known whether" in done.stderr
        assert manifest is None or unknown, f"an error and a release: {done.stderr}"
        assert done.stderr.startswith("error: ") or "\nerror: " in done.stderr, done.stderr
        said = done.stderr.strip().splitlines()[-1][:150]
    return f"{seconds:5.1f} s  {said}"


def with_s3(args):
    folder = tempfile.mkdtemp(prefix="anonymize-faults-")
    place = S3(args.s3)
    job = os.path.join(folder, "job.toml")
    with open(job, "w") as f:
        f.write(JOB.format(target=place.target, individuals=2000))
    for fault, rate in [("none", 0), ("500", 0.2), ("500", 1), ("503", 0.3), ("slow", 0.3), ("truncate", 0.2), ("truncate", 1), ("lost", 0.2)]:
        place.clear()
        listening, url, done = proxy(args.s3, fault, rate, args.seed)
        said = outcome(place, job, folder, environment(folder, url), environment(folder, args.s3))
        print(f"{fault:9} {rate:4}  {done['faults']:3} of {done['requests']:3} requests  {said}", flush=True)
        listening.shutdown()
    shutil.rmtree(folder)


def with_disk(args):
    for size in ["16k", "64k", "80k", "88k", "92k", "96k", "100k", "104k", "112k", "128k", "1m"]:
        folder = tempfile.mkdtemp(prefix="anonymize-disk-")
        disk = os.path.join(folder, "disk")
        os.mkdir(disk)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk], check=True)
        try:
            place = Local(disk)
            job = os.path.join(folder, "job.toml")
            with open(job, "w") as f:
                f.write(JOB.format(target=place.target, individuals=2000))
            env = environment(folder)
            said = outcome(place, job, folder, env, env)
            print(f"disk of {size:5} {said}; left: {len(place.names())} files", flush=True)
        finally:
            subprocess.run(["umount", disk], check=True)
            shutil.rmtree(folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--s3", metavar="URL")
    parser.add_argument("--disk", action="store_true")
    parser.add_argument("--seed", type=int, default=2, help="of which answers go wrong")
    arguments = parser.parse_args()
    if not (arguments.s3 or arguments.disk):
        parser.error("say --s3 URL, --disk or both")
    print(stamp(), flush=True)
    if arguments.disk:
        with_disk(arguments)
    if arguments.s3:
        with_s3(arguments)
