"""Ways in which programs write, each a function or a text for `sh`: run as `preload_cases.py NAME` in a folder that
preload.py filled. Each prints what it sees; nothing printed may depend on the time or on numbers of processes."""
import csv
import ctypes
import glob
import gzip
import importlib
import logging
import mmap
import multiprocessing
import os
import pathlib
import pickle
import shelve
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import threading
import zipfile

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def attempt(function, *arguments, **more):
    """Prints what a call returns, or its error."""
    try:
        print(function.__name__, function(*arguments, **more))
    except OSError as error:
        print(function.__name__, error.errno, error.filename)


def read(name):
    with open(name) as file:
        return file.read()


def write(name, text, mode="w"):
    with open(name, mode) as file:
        return file.write(text)


@case
def open_modes():
    write("best.pt", "new")
    write("log.csv", "more\n", "a")
    write("inner/deep/leaf", "L", "r+")
    write("fresh", "x", "x")
    attempt(write, "best.pt", "x", "x")
    attempt(write, "no/such", "x")
    attempt(write, "inner", "x")
    attempt(write, "best.pt/x", "x")
    attempt(read, "nothing")
    attempt(os.open, "slash/", os.O_WRONLY | os.O_CREAT)
    print([read(name) for name in ("best.pt", "log.csv", "inner/deep/leaf", "fresh")])
    with open("best.pt", "w+") as file:
        file.write("again")
        file.seek(0)
        print(file.read())


@case
def descriptors():
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC, os.O_WRONLY | os.O_APPEND, os.O_RDONLY | os.O_TRUNC):
        descriptor = os.open("long.txt", flags)
        if flags & 3:
            os.write(descriptor, b"12")
        os.close(descriptor)
        print(read("long.txt"))
    reader = os.open("best.pt", os.O_RDONLY)
    os.fchmod(reader, 0o600)
    os.utime(reader, (5, 5))
    os.fchown(reader, os.getuid(), os.getgid())
    os.close(reader)
    print(oct(os.stat("best.pt").st_mode), os.stat("best.pt").st_mtime)


@case
def folder_descriptors():
    folder = os.open("inner", os.O_RDONLY)
    print(sorted(os.listdir(folder)))
    descriptor = os.open("new", os.O_WRONLY | os.O_CREAT, dir_fd=folder)
    os.close(descriptor)
    print(sorted(os.listdir(folder)))
    os.mkdir("made", dir_fd=folder)
    os.rename("new", "made/newer", src_dir_fd=folder, dst_dir_fd=folder)
    os.unlink("a", dir_fd=folder)
    print(sorted(os.listdir(folder)), os.stat("made/newer", dir_fd=folder).st_size)
    os.chmod("b", 0o400, dir_fd=folder)
    os.symlink("b", "link", dir_fd=folder)
    print(os.readlink("link", dir_fd=folder), os.access("a", os.F_OK, dir_fd=folder))
    os.fchdir(folder)
    print(os.path.basename(os.getcwd()), sorted(os.listdir(".")), sorted(os.listdir("..")))
    write("relative", "r")
    os.chdir("made")
    print(os.getcwd().split("/")[-2:], os.listdir("."))
    print(os.path.basename(os.path.realpath(".")), os.readlink("/proc/self/cwd").split("/")[-2:])
    write("../../from_below", "x")
    os.close(folder)


@case
def renames():
    write("tmp", "T")
    os.replace("tmp", "best.pt")
    os.rename("log.csv", "inner/log")
    os.mkdir("fresh")
    write("fresh/x", "x")
    os.rename("fresh", "fresher")
    attempt(os.rename, "fresher", "inner")
    attempt(os.rename, "fresher", "best.pt")
    attempt(os.rename, "best.pt", "fresher")
    attempt(os.rename, "nothing", "x")
    os.rename("fresher", "empty")
    print(read("best.pt"), os.listdir("empty"), os.path.exists("log.csv"))
    print(os.path.exists("fresh/x"), os.path.exists("fresher/x"))
    os.makedirs("stage/a/b")
    write("stage/a/b/c", "c")
    os.rename("stage", "inner/stage")
    print(read("inner/stage/a/b/c"), os.path.exists("stage/a"))
    shutil.rmtree("checkpoints")
    os.rename("inner/stage", "checkpoints")
    print(sorted(os.listdir("checkpoints")), os.path.exists("checkpoints/1.pt"))
    os.rename("checkpoints", "checkpoints.old")
    print(os.path.exists("checkpoints"), os.path.exists("checkpoints/1.pt"), read("checkpoints.old/a/b/c"))


@case
def removals():
    os.unlink("best.pt")
    attempt(os.unlink, "best.pt")
    attempt(os.unlink, "inner")
    attempt(os.rmdir, "inner")
    attempt(os.rmdir, "log.csv")
    os.rmdir("empty")
    shutil.rmtree("checkpoints")
    for name in ("checkpoints", "checkpoints/1.pt", "checkpoints/sub/2.pt", "checkpoints/sub"):
        attempt(os.stat, name)
        print(os.path.exists(name))
    attempt(write, "checkpoints/x", "x")
    attempt(write, "checkpoints/sub/x", "x")
    attempt(write, "checkpoints/sub/2.pt", "x", "r+")
    attempt(os.listdir, "checkpoints/sub")
    attempt(os.unlink, "checkpoints/sub/2.pt")
    attempt(os.mkdir, "checkpoints/sub/new")
    attempt(os.chmod, "checkpoints/sub/2.pt", 0o600)
    os.mkdir("checkpoints")
    print(os.listdir("checkpoints"), os.path.exists("checkpoints/sub/2.pt"))
    os.makedirs("checkpoints/sub")
    print(os.path.exists("checkpoints/sub/2.pt"), os.listdir("checkpoints/sub"))
    shutil.rmtree("checkpoints")
    write("checkpoints", "a file")
    attempt(os.stat, "checkpoints/1.pt")
    attempt(os.listdir, "checkpoints")
    shutil.rmtree("inner")
    os.symlink("data", "inner")
    print(sorted(os.listdir("inner")), os.path.exists("inner/deep/leaf"))


@case
def folders():
    os.makedirs("x/y/z")
    os.makedirs("inner/deep/er", exist_ok=True)
    attempt(os.mkdir, "x")
    attempt(os.mkdir, "best.pt")
    attempt(os.mkdir, "no/such")
    shutil.copytree("inner", "x/copy")
    shutil.move("inner/deep", "moved")
    shutil.move("data", "x/data")
    for place, inner, files in sorted(os.walk(".")):
        print(place, sorted(inner), sorted(files))
    print(sorted(glob.glob("**/*", recursive=True)))
    print(sorted((e.name, e.is_dir(), e.is_file(follow_symlinks=False), e.is_symlink()) for e in os.scandir(".")))


@case
def attributes():
    os.truncate("long.txt", 2)
    os.utime("best.pt", (7, 8))
    os.utime("inner", (9, 9))
    os.chmod("log.csv", 0o640)
    os.chmod("inner", 0o750)
    os.chmod("latest", 0o644)
    os.utime("latest", (3, 3), follow_symlinks=False)
    os.chown("best.pt", os.getuid(), os.getgid())
    os.mkfifo("pipe")
    try:
        os.setxattr("best.pt", "user.a", b"1")
        print(os.getxattr("best.pt", "user.a"), os.listxattr("best.pt"))
        os.setxattr("best.pt", "user.b", b"1", follow_symlinks=False)
        os.removexattr("best.pt", "user.b", follow_symlinks=False)
        with open("data/a") as file:
            os.setxattr(file.fileno(), "user.c", b"2")
            print(os.getxattr("data/a", "user.c"))
    except OSError as error:
        print(error)
    for name in ("best.pt", "inner", "log.csv", "long.txt"):
        found = os.stat(name)
        print(name, oct(found.st_mode), found.st_mtime if found.st_mtime < 1e9 else "-", found.st_size * (name != "inner"))
    attempt(os.truncate, "inner", 0)
    attempt(os.truncate, "nothing", 0)


@case
def links():
    os.symlink("best.pt", "to_best")
    os.symlink("nowhere", "dangling")
    os.symlink(os.path.abspath("inner"), "absolute")
    os.link("best.pt", "hard")
    write("to_best", "through")
    write("dangling", "made")
    write("absolute/by_link", "x")
    write("old_link/by_old_link", "y")
    write("latest", "by latest")
    print(read("best.pt"), read("nowhere"), read("hard"), os.stat("hard").st_nlink, os.path.samefile("hard", "best.pt"))
    print(sorted(os.listdir("inner")), sorted(os.listdir("old_link")), os.readlink("absolute") == os.path.abspath("inner"))
    print(os.path.relpath(os.path.realpath("absolute/by_link")), os.path.relpath(os.path.realpath("old_link")))
    os.unlink("latest")
    os.symlink("log.csv", "latest")
    print(os.readlink("latest"))
    os.rename("latest", "moved_link")
    print(os.readlink("moved_link"), os.path.islink("old_link"), os.path.islink("data"))
    attempt(os.symlink, "x", "best.pt")
    attempt(os.link, "nothing", "y")
    attempt(os.readlink, "data/a")


@case
def databases():
    for mode in ("wal", "delete", "truncate"):
        connection = sqlite3.connect("runs.db")
        print(connection.execute("pragma journal_mode=" + mode).fetchone())
        connection.execute("create table if not exists t (a)")
        for number in range(50):
            with connection:
                connection.execute("insert into t values (?)", (number,))
        other = sqlite3.connect("runs.db")
        print(other.execute("select count(*), sum(a) from t").fetchone())
        other.close()
        connection.close()
    with shelve.open("shelf") as shelf:
        shelf["a"] = [1]
    with shelve.open("shelf") as shelf:
        print(shelf["a"])
    [os.unlink(name) for name in glob.glob("shelf*")]


@case
def archives():
    with open("state.pkl", "wb") as file:
        pickle.dump({"a": [1]}, file)
    print(pickle.load(open("state.pkl", "rb")))
    with zipfile.ZipFile("all.zip", "w") as archive:
        archive.write("best.pt")
    with zipfile.ZipFile("all.zip", "a") as archive:
        archive.write("data/a")
    zipfile.ZipFile("all.zip").extractall("unzipped")
    with tarfile.open("all.tar.gz", "w:gz") as archive:
        archive.add("inner")
    tarfile.open("all.tar.gz").extractall("untarred")
    with gzip.open("log.gz", "at") as file:
        file.write("x")
    print(sorted(tarfile.open("all.tar.gz").getnames()), gzip.open("log.gz", "rt").read())
    shutil.make_archive("inner_archive", "zip", "inner")
    for name in ("all.zip", "all.tar.gz", "log.gz", "inner_archive.zip"):
        os.unlink(name)


@case
def files_of_libraries():
    with tempfile.NamedTemporaryFile("w", dir=os.getcwd(), delete=False) as file:
        file.write("x")
    os.replace(file.name, "atomic")
    with tempfile.TemporaryFile(dir=".") as file:
        file.write(b"hidden")
        file.seek(0)
        print(file.read())
    with tempfile.TemporaryDirectory(dir=".") as folder:
        write(folder + "/x", "x")
        print(os.listdir(folder))
    handler = logging.FileHandler("train.log")
    handler.emit(logging.makeLogRecord({"msg": "step"}))
    handler.close()
    pathlib.Path("inner/p.txt").write_text("p")
    pathlib.Path("touched").touch()
    pathlib.Path("best.pt").rename("best.old")
    with open("log.csv", "a", newline="") as file:
        csv.writer(file).writerow([1, 2])
    with open("long.txt", "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[0:1] = b"M"
    print(read("atomic"), read("train.log"), read("inner/p.txt"), read("log.csv"), read("long.txt"))
    os.makedirs("package")
    write("package/__init__.py", "value = 3")
    sys.path.insert(0, os.getcwd())
    package = importlib.import_module("package")
    print(package.value, os.path.relpath(package.__file__))
    shutil.rmtree("package/__pycache__", ignore_errors=True)


@case
def the_c_library():
    libc = ctypes.CDLL(None, use_errno=True)
    for name in (b"c_XXXXXX", b"best.pt"):
        buffer = ctypes.create_string_buffer(name)
        descriptor = libc.mkstemp(buffer)
        print(descriptor >= 0, ctypes.get_errno() if descriptor < 0 else 0)
        if descriptor >= 0:
            libc.close(descriptor)
            os.unlink(buffer.value)
    print(libc.remove(b"empty"), libc.remove(b"best.pt"), libc.remove(b"inner"))
    print(libc.rename(b"data/a", b"data/z"), libc.truncate(b"long.txt", 1))
    libc.realpath.restype = ctypes.c_char_p
    print(os.path.relpath(libc.realpath(b"inner/../data/z", None).decode()))
    entries = ctypes.c_void_p()
    print("scandir", libc.scandir(b"data", ctypes.byref(entries), None, None))


@case
def masks():
    os.umask(0o777)
    os.makedirs("none", exist_ok=True)
    write("inner/deep/new", "x")
    write("data/a", "x")
    os.unlink("best.pt")
    os.umask(0o022)
    print([oct(os.stat(name).st_mode) for name in ("none", "inner/deep", "inner/deep/new", "data/a")])
    os.chmod("none", 0o700)
    os.chmod("inner/deep/new", 0o600)
    os.chmod("data", 0o555)
    write("data/b", "more", "a")
    if os.getuid():
        attempt(write, "data/new", "x")
    os.chmod("data/b", 0o600)
    os.chmod("data", 0o755)


@case
def workers():
    def make(number):
        os.makedirs(f"workers/{number % 3}", exist_ok=True)
        write(f"workers/{number % 3}/{number}", str(number))
        write("shared.log", f"{number}\n", "a")

    threads = [threading.Thread(target=make, args=(number,)) for number in range(40)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    with multiprocessing.get_context("fork").Pool(4) as pool:
        pool.map(write_one, range(40, 100))
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(pool.map(len_of, ["shared.log", "long.txt"]))
    print(sum(len(files) for _, _, files in os.walk("workers")), sorted(read("shared.log").split(), key=int)[-1])
    os.unlink("shared.log")


def write_one(number):
    os.makedirs(f"workers/{number % 7}", exist_ok=True)
    write(f"workers/{number % 7}/{number}", str(number))


def len_of(name):
    return os.path.getsize(name) if name == "long.txt" else len(read(name).split())


@case
def programs():
    quiet = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    for variables in (None, {}, quiet, {**quiet, "LD_PRELOAD": ""}):
        print(subprocess.run(["/bin/sh", "-c", "echo y > fromsh; cat fromsh best.pt"], env=variables, capture_output=True).stdout)
    write("tool", "#!/bin/sh\necho tool $1; basename $0; echo t > by_tool\n")
    os.chmod("tool", 0o755)
    print(subprocess.run(["./tool", "one"], capture_output=True).stdout)
    print(subprocess.run([os.path.abspath("tool"), "two"], capture_output=True, env=quiet, cwd="inner").stdout)
    print(os.system("echo s > by_system; test -e by_tool"), subprocess.getoutput("ls inner"))
    actions = [(os.POSIX_SPAWN_OPEN, 1, "spawned", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)]
    os.waitpid(os.posix_spawn("/bin/echo", ["echo", "hi"], os.environ, file_actions=actions), 0)
    print(read("spawned"))
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.execl("./tool", "tool", "three")
    os.waitpid(child, 0)
    os.makedirs("bin")
    shutil.copy("tool", "bin/found")
    print(subprocess.run(["found", "four"], capture_output=True, env={"PATH": os.path.abspath("bin") + ":/bin:/usr/bin"}).stdout)


CASES["sh_simple"] = "echo > f; mv f g; rm g; echo a >> log.csv; : > best.pt; cat log.csv; ls"
CASES["sh_copies"] = "cp -r inner copy; cp -a inner copy2; cp best.pt long.txt; mv checkpoints moved; mv data/a data/b; ls -R"
CASES["sh_sed"] = "sed -i s/o/0/ log.csv inner/a; cat log.csv inner/a; touch best.pt; ln -sf data latest; ls latest/"
CASES["sh_git"] = """export GIT_AUTHOR_DATE=@1 GIT_COMMITTER_DATE=@1 GIT_CONFIG_GLOBAL=/dev/null GIT_PAGER=cat
git init -q . && git config user.email a@b && git config user.name n && git add . && git commit -qm x
git rm -q best.pt && git mv log.csv log2 && git commit -qm y && git checkout -q HEAD~1 && git status --short
git log --all --format=%H; git gc -q; git fsck; rm -rf .git"""
CASES["sh_tar"] = "tar cf t.tar inner data; mkdir x; tar xf t.tar -C x; tar xf t.tar; rm t.tar; rm -r inner; find . | sort; du -a x | wc -l"
CASES["sh_find"] = "find . -name '*.pt' -delete; find . -type d -empty -delete; find . -type f -exec chmod 600 {} +; find . | sort; rm -rf data; ls"
CASES["sh_cd"] = "cd inner; echo x > ../up; pwd -P | sed 's,.*/,,'; mkdir n; cd n; echo y > z; pwd -P | sed 's,.*/,,'; cd ..; ls; rm -r n; ls ..; realpath a | sed 's,.*/tree,,'"
CASES["sh_install"] = "install -D -m 755 best.pt bin/x/best; dd if=/dev/zero of=zeros bs=1k count=4 2>/dev/null; truncate -s 10M sparse; stat -c '%s %a' bin/x/best zeros sparse; cp sparse sparse2; rsync --version >/dev/null 2>&1; split -b 2 long.txt part.; ls"
CASES["sh_sqlite"] = "command -v sqlite3 >/dev/null || exit 0; sqlite3 s.db 'create table t(a); insert into t values(1)'; sqlite3 s.db 'update t set a=2; select * from t'"
CASES["perl"] = "command -v perl >/dev/null || exit 0; perl -i -pe 's/step/STEP/' log.csv; perl -e 'rename \"best.pt\",\"b\"; mkdir \"pl\"; open F,\">pl/f\"; print F 1; unlink \"long.txt\"; rmdir \"empty\"; print join(\" \",sort glob(\"*\"))'; cat log.csv"


def optional(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


@case
def numpy_files():
    numpy = optional("numpy")
    if numpy:
        numpy.save("a.npy", numpy.arange(9))
        numpy.savez("a.npz", a=numpy.arange(3))
        mapped = numpy.memmap("m.bin", dtype="u1", mode="w+", shape=(10,))
        mapped[:] = 3
        mapped.flush()
        changed = numpy.load("a.npy", mmap_mode="r+")
        changed[0] = 7
        changed.flush()
        numpy.memmap("long.txt", dtype="u1", mode="r+")[0] = 65
        numpy.savetxt("a.txt", numpy.arange(3))
        print(numpy.load("a.npy").sum(), numpy.load("a.npz")["a"].sum(), os.path.getsize("m.bin"), read("long.txt"))
        os.unlink("a.npz")


@case
def hdf5_files():
    h5py = optional("h5py")
    if h5py:
        for mode in ("w", "a", "r+"):
            with h5py.File("a.h5", mode) as file:
                file["x" + mode[0]] = [1, 2, 3]
        with h5py.File("a.h5", "r") as file:
            print(sorted(file), list(file["xw"]))
        os.unlink("a.h5")


@case
def safetensors_files():
    numpy, safetensors = optional("numpy"), optional("safetensors.numpy")
    if numpy and safetensors:
        for number in range(2):
            safetensors.save_file({"w": numpy.ones(4) * number}, "m.safetensors")
            print(safetensors.load_file("m.safetensors"))


if __name__ == "__main__":
    chosen = CASES[sys.argv[1]]
    if isinstance(chosen, str):
        os.execl("/bin/sh", "sh", "-c", chosen)
    chosen()
