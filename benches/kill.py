#!/usr/bin/env python3
"""Kills `anonymize run` at random moments and looks at what is visible.

    python3 benches/kill.py [--kills 200] [--individuals 2000]
    python3 benches/kill.py --s3 http://127.0.0.1:5555 --kills 50      (an S3-compatible server, e.g. moto)

The program is the environment variable ANONYMIZE, or target/release/anonymize. Credentials are those of the environment
(AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY), or what any test server takes. Needs boto3 for --s3.

After each kill the manifest must be absent, or complete: valid JSON whose files are there with their sizes and SHA-256, and
`anonymize audit` must find in them what the job asked for. After every tenth kill and at the end, a run must succeed and leave
nothing but its manifest and its files: no staging of those before, no spilled file, no other file beside the job.
"""
import argparse, datetime, hashlib, json, os, random, shutil, subprocess, sys, tempfile, time

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
AUDIT = ["--id", "individual", "--qi", "sex,birth_year,race", "--sensitive", "diagnosis", "--require", "eir_l=3"]


def program():
    """The program to test, as an absolute path."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    found = os.environ.get("ANONYMIZE") or os.path.join(root, "target/release/anonymize")
    if not os.path.isfile(found):
        sys.exit(f"there is no program '{found}': build it, or set ANONYMIZE")
    return os.path.abspath(found)


def environment(folder, endpoint=None):
    """The environment of the program: its own folder for spilled files, and the settings of an S3 server."""
    own = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    own["TMPDIR"] = os.path.join(folder, "tmp")
    os.makedirs(own["TMPDIR"], exist_ok=True)
    if endpoint:
        own.update(AWS_ENDPOINT=endpoint, AWS_ENDPOINT_URL=endpoint, AWS_ALLOW_HTTP="true", AWS_EC2_METADATA_DISABLED="true")
        own.setdefault("AWS_REGION", "us-east-1")
        own.setdefault("AWS_ACCESS_KEY_ID", "key")
        own.setdefault("AWS_SECRET_ACCESS_KEY", "secret")
    return own


def stamp():
    """The date and the commit of the tree that the script is in."""
    git = ["git", "-C", os.path.dirname(os.path.abspath(__file__))]
    run = lambda *args: subprocess.run(git + list(args), capture_output=True, text=True).stdout.strip()
    changed = "+changes" if run("status", "--porcelain", "--untracked-files=no") else ""
    return f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC, commit {run('rev-parse', '--short', 'HEAD')}{changed}"


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
        from botocore.config import Config

        self.bucket, self.prefix = "kill", f"releases/{os.getpid()}/"
        self.target = f"s3://{self.bucket}/{self.prefix}"
        self.client = boto3.client(
            "s3",
            endpoint_url=endpoint,
            region_name=os.environ.get("AWS_REGION", "us-east-1"),
            aws_access_key_id=os.environ.get("AWS_ACCESS_KEY_ID", "key"),
            aws_secret_access_key=os.environ.get("AWS_SECRET_ACCESS_KEY", "secret"),
            config=Config(proxies={}),
        )
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


def attained(place, manifest, env):
    """Fails unless an audit of the files finds what the job asked for."""
    data = os.path.dirname(manifest["files"][0]["path"])
    audit = [program(), "audit", f"{place.target.rstrip('/')}/{data}/"] + AUDIT
    done = subprocess.run(audit, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def leftovers(place, manifest, folder):
    """Fails if anything is there but a release and its job."""
    wanted = sorted(["manifest.json"] + [f["path"] for f in manifest["files"]])
    assert place.names() == wanted, (place.names(), wanted)
    assert os.listdir(os.path.join(folder, "tmp")) == [], "spilled files are left"
    assert set(os.listdir(folder)) <= {"job.toml", "tmp", "out"}, os.listdir(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--individuals", type=int, default=2000)
    parser.add_argument("--s3", metavar="URL")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="kill-anonymize-")
    place = Local(folder) if not args.s3 else S3(args.s3)
    env = environment(folder, args.s3)
    job = os.path.join(folder, "job.toml")
    with open(job, "w") as f:
        f.write(JOB.format(target=place.target, individuals=args.individuals))
    command = [program(), "run", job]

    def whole():
        start = time.time()
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        seconds = time.time() - start
        manifest = visible(place)
        attained(place, manifest, env)
        leftovers(place, manifest, folder)
        place.clear()
        return seconds

    # The faster of two: a first run may have waited for the disk, and kills after the end of a run show little.
    seconds = min(whole(), whole())
    moments = random.Random(args.seed)
    counts = {"visible, complete and verified": 0, "staging left": 0, "nothing there": 0}
    ended, sweeps = 0, 0
    for kill in range(1, args.kills + 1):
        child = subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(moments.uniform(0, seconds * 1.05))
        ended += child.poll() is not None
        child.kill()
        child.wait()
        manifest = visible(place)
        if manifest:
            attained(place, manifest, env)
            counts["visible, complete and verified"] += 1
            place.clear()
        else:
            counts["staging left" if place.names() else "nothing there"] += 1
        if kill % 10 == 0 or kill == args.kills:
            seconds = min(seconds, whole())
            sweeps += 1
    where = "at an S3 server" if args.s3 else "here"
    found = ", ".join(f"{n} {what}" for what, n in counts.items())
    print(
        f"{stamp()}: {args.kills} kills {where} ({ended} of them after the end of a run of {seconds:.1f} s): {found}; "
        f"{sweeps} runs in between and after swept everything else"
    )
    shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
