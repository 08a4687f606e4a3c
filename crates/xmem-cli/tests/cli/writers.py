# 32 ways to write to the files of a folder, each of which the script sees done.
import ctypes
import gzip
import logging
import mmap
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
import zipfile

seen = 0


def check(what, done):
    global seen
    if not done:
        print("not seen:", what)
        os._exit(9)
    seen += 1


def read(name):
    with open(name) as file:
        return file.read()


def write_everything():
    with open("best.pt", "w") as file:
        file.write("zeros")
    check("open w", read("best.pt") == "zeros")
    with open("log.csv", "a") as file:
        file.write("0,0\n")
    check("open a", read("log.csv") == "step,loss\n0,0\n")
    with open("settings.json", "r+") as file:
        file.write("[")
    check("open r+", read("settings.json") == "[}")
    with open("new.txt", "x") as file:
        file.write("new")
    check("open x", read("new.txt") == "new")
    descriptor = os.open("raw.bin", os.O_WRONLY | os.O_TRUNC)
    os.write(descriptor, b"r")
    os.close(descriptor)
    check("os.open", read("raw.bin") == "r")
    os.replace("new.txt", "replaced.txt")
    check("os.replace", read("replaced.txt") == "new" and not os.path.exists("new.txt"))
    os.rename("renamed.txt", "renamed.old")
    check("os.rename", read("renamed.old") == "renamed" and not os.path.exists("renamed.txt"))
    os.unlink("removed.txt")
    check("os.unlink", "removed.txt" not in os.listdir("."))
    os.makedirs("made/inner")
    check("os.makedirs", os.path.isdir("made/inner"))
    os.rmdir("empty")
    check("os.rmdir", not os.path.exists("empty"))
    shutil.rmtree("checkpoints")
    check("shutil.rmtree", not os.path.exists("checkpoints"))
    os.mkdir("checkpoints")
    check("a folder again", os.listdir("checkpoints") == [])
    shutil.copytree("data", "copy")
    check("shutil.copytree", sorted(os.listdir("copy")) == ["a", "b"])
    shutil.move("data/a", "moved")
    check("shutil.move", os.listdir("data") == ["b"] and read("moved") == "a")
    os.truncate("long.txt", 2)
    check("os.truncate", os.stat("long.txt").st_size == 2)
    os.utime("old.txt", (1, 1))
    check("os.utime", os.stat("old.txt").st_mtime == 1)
    os.chmod("mode.txt", 0o600)
    check("os.chmod", os.stat("mode.txt").st_mode & 0o777 == 0o600)
    os.symlink("best.pt", "latest")
    check("os.symlink", os.readlink("latest") == "best.pt")
    os.link("best.pt", "linked")
    check("os.link", read("linked") == "zeros")
    connection = sqlite3.connect("runs.db")
    connection.execute("insert into runs values (2)")
    connection.commit()
    check("sqlite3", connection.execute("select count(*) from runs").fetchone() == (2,))
    connection.close()
    with open("state.pkl", "wb") as file:
        pickle.dump([1], file)
    check("pickle", os.path.getsize("state.pkl") > 5)
    with shelve.open("shelf") as shelf:
        shelf["a"] = 1
    with shelve.open("shelf") as shelf:
        check("shelve", shelf["a"] == 1)
    with zipfile.ZipFile("all.zip", "w") as archive:
        archive.write("best.pt")
    check("zipfile", zipfile.ZipFile("all.zip").namelist() == ["best.pt"])
    with tarfile.open("all.tar", "w") as archive:
        archive.add("data")
    check("tarfile", len(tarfile.open("all.tar").getnames()) == 2)
    with gzip.open("log.gz", "wt") as file:
        file.write("x")
    check("gzip", gzip.open("log.gz", "rt").read() == "x")
    pathlib.Path("results.txt").write_text("final loss 0")
    check("pathlib", pathlib.Path("results.txt").read_text() == "final loss 0")
    with tempfile.NamedTemporaryFile("w", dir=".", delete=False) as file:
        file.write("x")
    os.replace(file.name, "atomic.txt")
    check("tempfile", read("atomic.txt") == "x")
    handler = logging.FileHandler("train.log")
    handler.emit(logging.makeLogRecord({"msg": "step"}))
    handler.close()
    check("logging", read("train.log") == "step\n")
    with open("mapped.bin", "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[0:1] = b"M"
    check("mmap", read("mapped.bin") == "Mapped")
    subprocess.run("echo sh > shell.txt; rm inner.txt; mv best.pt best.old", shell=True, check=True)
    check("sh", read("shell.txt") == "sh\n" and not os.path.exists("inner.txt"))
    with open("best.pt", "w") as file:
        file.write("zeros")
    libc = ctypes.CDLL(None)
    descriptor = libc.open(b"c.txt", os.O_WRONLY | os.O_CREAT, 0o644)
    libc.write(descriptor, b"c", 1)
    libc.close(descriptor)
    check("C", read("c.txt") == "c")
    with open(os.path.join(os.environ["HOME"], ".cache"), "w") as file:
        file.write("x")
    check("the home folder", os.path.exists(os.path.expanduser("~/.cache")))
    print("seen", seen)
    sys.stdout.flush()
