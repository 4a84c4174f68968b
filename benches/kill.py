#!/usr/bin/env python3
"""Kills `anonymize run` at random moments and looks at what is visible.

    python3 benches/kill.py PROGRAM [--kills 200] [--individuals 2000]
    python3 benches/kill.py PROGRAM --s3 http://127.0.0.1:5555 --kills 50      (an S3-compatible server, e.g. moto)

After each kill the manifest must be absent, or complete: valid JSON whose files are there with their sizes and SHA-256.
At the end a run must succeed and leave nothing but its manifest and its files.
"""
import argparse, hashlib, json, os, random, shutil, subprocess, sys, tempfile, time

JOB = """
target = "{target}"
[input]
patients = {{ sql = "SELECT * FROM sample_patients(individuals => {individuals}, seed => 1)" }}
[publish]
function = "anonymize_eir"
id = "patient_id"
qi = ["sex", "birth_year", "race"]
sensitive = "diagnosis"
l = 3
[report]
enabled = false
"""


class Local:
    def __init__(self, folder):
        self.target = os.path.join(folder, "out")

    def names(self):
        found = []
        for root, _, files in os.walk(self.target):
            found += [os.path.relpath(os.path.join(root, f), self.target) for f in files]
        return sorted(found)

    def read(self, name):
        try:
            with open(os.path.join(self.target, name), "rb") as f:
                return f.read()
        except FileNotFoundError:
            return None

    def clear(self):
        shutil.rmtree(self.target, ignore_errors=True)


class S3:
    def __init__(self, endpoint):
        import boto3

        self.bucket, self.prefix = "kill", "releases/out/"
        self.target = f"s3://{self.bucket}/{self.prefix}"
        self.client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")
        try:
            self.client.create_bucket(Bucket=self.bucket)
        except self.client.exceptions.BucketAlreadyOwnedByYou:
            pass
        self.clear()

    def names(self):
        listed = self.client.list_objects_v2(Bucket=self.bucket, Prefix=self.prefix)
        return sorted(o["Key"][len(self.prefix):] for o in listed.get("Contents", []))

    def read(self, name):
        try:
            return self.client.get_object(Bucket=self.bucket, Key=self.prefix + name)["Body"].read()
        except self.client.exceptions.NoSuchKey:
            return None

    def clear(self):
        for name in self.names():
            self.client.delete_object(Bucket=self.bucket, Key=self.prefix + name)


def visible(place):
    """Whether there is a manifest; fails if it is not complete."""
    text = place.read("manifest.json")
    if text is None:
        return None
    manifest = json.loads(text)
    assert manifest["manifest_version"] == 1 and manifest["files"]
    for file in manifest["files"]:
        data = place.read(file["path"])
        assert data is not None and len(data) == file["bytes"], file
        assert hashlib.sha256(data).hexdigest() == file["sha256"], file
    return manifest


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--individuals", type=int, default=2000)
    parser.add_argument("--s3")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="anonymize-kill-")
    place = Local(folder) if not args.s3 else S3(args.s3)
    job = os.path.join(folder, "job.toml")
    with open(job, "w") as f:
        f.write(JOB.format(target=place.target, individuals=args.individuals))
    command = [args.program, "run", job]

    def whole():
        start = time.time()
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return time.time() - start

    seconds = whole()
    assert visible(place)
    place.clear()
    moments = random.Random(args.seed)
    counts = {"visible and complete": 0, "staging left": 0, "nothing there": 0, "ended before the kill": 0}
    for _ in range(args.kills):
        child = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(moments.uniform(0, seconds * 1.05))
        if child.poll() is not None:
            counts["ended before the kill"] += 1
        child.kill()
        child.wait()
        if visible(place):
            counts["visible and complete"] += 1
            place.clear()
        elif place.names():
            counts["staging left"] += 1
        else:
            counts["nothing there"] += 1
    whole()
    manifest = visible(place)
    wanted = sorted(["manifest.json"] + [f["path"] for f in manifest["files"]])
    assert place.names() == wanted, (place.names(), wanted)
    print(f"{args.kills} kills, a whole run takes {seconds:.1f} s: {counts}; the last run swept everything else")
    shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
