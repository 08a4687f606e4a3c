"""Judges the preloaded library: every program of preload_cases.py and preload.c runs in two equal trees, without the
library and with it. Both must print the same, find the same tree afterwards, and the second tree must stay as it was.

preload.py LIBRARY [NAME...]
"""
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
OLD = 1_600_000_000
FILES = {"best.pt": "trained", "log.csv": "step,loss\n", "long.txt": "a long text", "inner/a": "one\n", "inner/b": "b",
         "inner/deep/leaf": "leaf", "data/a": "A", "data/b": "B", "checkpoints/1.pt": "1", "checkpoints/sub/2.pt": "2"}


def fill(tree):
    os.makedirs(tree + "/empty")
    for name, text in FILES.items():
        os.makedirs(os.path.dirname(f"{tree}/{name}"), exist_ok=True)
        with open(f"{tree}/{name}", "w") as file:
            file.write(text)
    os.chmod(tree + "/long.txt", 0o664)
    os.symlink("best.pt", tree + "/latest")
    os.symlink("inner/deep", tree + "/old_link")
    for place, folders, files in os.walk(tree, topdown=False):
        for name in folders + files + ["."]:
            os.utime(os.path.join(place, name), (OLD, OLD), follow_symlinks=False)


def manifest(tree, is_exact):
    """What there is in a tree: all of it if exact, else what a program can be expected to see twice."""
    found = {}
    for place, folders, files in os.walk(tree):
        for name in folders + files + ["."] * (place == tree):
            path = os.path.join(place, name)
            stat = os.lstat(path)
            content = os.readlink(path) if os.path.islink(path) else ""
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as file:
                    content = hashlib.sha256(file.read()).hexdigest()
            time = stat.st_mtime_ns if is_exact or stat.st_mtime < OLD + 1 else "new"
            of_system = (stat.st_ino, stat.st_nlink, stat.st_ctime_ns, stat.st_size) if is_exact else ()
            found[os.path.relpath(path, tree)] = (stat.st_mode, stat.st_uid, stat.st_gid, time, content) + of_system
    return found


def run(work, command, library):
    """Runs a command in a new tree, and returns what it printed, the tree that it left to itself, and the changes."""
    tree, folder = work + "/tree", work + "/kept"
    for path in (tree, folder):
        shutil.rmtree(path, ignore_errors=True)
    os.makedirs(folder)
    fill(tree)
    before = manifest(tree, True)
    variables = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "HOME": tree, "LC_ALL": "C"}
    if library:
        passing = "/dev:/proc:/sys:/run:/tmp:/var/tmp"
        variables.update(LD_PRELOAD=library, XMEM_OVERLAY=folder, XMEM_OVERLAY_PASS=passing, XMEM_OVERLAY_KEEP=tree)
    ran = subprocess.run(command, cwd=tree, env=variables, capture_output=True, text=True, timeout=300)
    # With the library, only a process that has it sees the tree.
    lister = [sys.executable, __file__, "--list", tree]
    listed = subprocess.run(lister, env=variables, capture_output=True, text=True, check=True).stdout
    after = manifest(tree, True)
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    return [f"exit {ran.returncode}", *ran.stdout.splitlines(), *ran.stderr.splitlines()[-8:]], listed.splitlines(), changed


def main():
    if sys.argv[1] == "--list":
        for name, about in sorted(manifest(sys.argv[2], False).items()):
            print(name, about)
        return 0
    library = os.path.abspath(sys.argv[1])
    work = os.path.realpath(tempfile.mkdtemp())
    compiler = os.environ.get("CC", "cc")
    program = work + "/program"
    subprocess.run([compiler, "-D_FORTIFY_SOURCE=2", "-O2", "-w", "-o", program, HERE + "/preload.c"], check=True)
    sys.path.insert(0, HERE)
    sys.dont_write_bytecode = True
    import preload_cases
    commands = {name: [sys.executable, HERE + "/preload_cases.py", name] for name in preload_cases.CASES}
    commands["c_program"] = [program]
    chosen = sys.argv[2:] or list(commands)
    failed = 0
    for name in chosen:
        without, expected, _ = run(work, commands[name], None)
        seen, found, changed = run(work, commands[name], library)
        problems = [f"  changed: {path}" for path in changed]
        for a, b, what in ((without, seen, "printed"), (expected, found, "tree")):
            problems += [f"  {what}, without: {text}" for text in a if text not in b]
            problems += [f"  {what}, with:    {text}" for text in b if text not in a]
        if not problems and (without, expected) != (seen, found):
            problems.append("  another order")
        print("\n".join([("FAILED " if problems else "passed ") + name] + problems), flush=True)
        failed += bool(problems)
    shutil.rmtree(work)
    print(f"{len(chosen) - failed} of {len(chosen)} passed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
