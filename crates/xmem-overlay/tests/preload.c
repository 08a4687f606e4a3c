/* A C program that writes in the ways of C programs; prints what it sees. Compiled and run by preload.py. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static void line(const char *what, long result)
{
    printf("%s %ld %s\n", what, result, result < 0 ? strerror(errno) : "");
}

static int wanted(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

int main(void)
{
    char text[64] = "";
    FILE *file = fopen("best.pt", "r+");
    fputs("C", file);
    file = freopen("log.csv", "a", file);
    fputs("more\n", file);
    fclose(file);
    file = fopen("log.csv", "re");
    while (fgets(text, sizeof text, file))
        fputs(text, stdout);
    fclose(file);
    line("fopen", fopen("nothing", "r") ? 0 : -1);
    line("fopen", fopen("no/such", "w") ? 0 : -1);
    line("creat", close(creat("made", 0604)));
    int nameless = open(".", O_TMPFILE | O_RDWR, 0644);
    if (nameless >= 0) {
        sprintf(text, "/proc/self/fd/%d", nameless);
        if (write(nameless, "t", 1) != 1)
            return 1;
        line("linkat", linkat(AT_FDCWD, text, AT_FDCWD, "named", AT_SYMLINK_FOLLOW));
        close(nameless);
    }
    line("renameat2", renameat2(AT_FDCWD, "made", AT_FDCWD, "best.pt", RENAME_NOREPLACE));
    line("renameat2", renameat2(AT_FDCWD, "made", AT_FDCWD, "best.pt", RENAME_EXCHANGE));
    struct timeval times[2] = {{4, 0}, {4, 0}};
    line("utimes", utimes("long.txt", times));
    line("lutimes", lutimes("latest", times));
    line("futimesat", futimesat(AT_FDCWD, "data/a", times));
    int reader = open("data/b", O_RDONLY);
    line("futimes", futimes(reader, times));
    line("fchmod", fchmod(reader, 0640));
    line("ftruncate", ftruncate(reader, 0));
    close(reader);
    line("mkdir", mkdir("folder", 0711));
    line("mkdir", mkdir("folder/in/", 0700));
    line("rmdir", rmdir("folder/"));
    line("unlink", unlink("folder"));
    line("unlink", unlink("long.txt/"));
    line("access", access("folder/in", X_OK));
    line("remove", remove("empty"));
    struct dirent **entries;
    int count = scandir(".", &entries, wanted, alphasort);
    for (int at = 0; at < count; at++)
        printf("%s ", entries[at]->d_name);
    printf("\n");
    glob_t found;
    line("glob", glob("*/*", GLOB_MARK, NULL, &found));
    for (size_t at = 0; at < found.gl_pathc; at++)
        printf("%s ", found.gl_pathv[at]);
    printf("\n");
    line("chdir", chdir("folder/in"));
    char *folder = getcwd(NULL, 0);
    printf("%s\n", strstr(folder, "/tree"));
    line("creat", close(creat("below", 0600)));
    line("chdir", chdir("../.."));
    pid_t child = vfork();
    if (child == 0) {
        char *variables[] = {NULL};
        execle("/bin/sh", "sh", "-c", "echo v > by_vfork; cat best.pt", NULL, variables);
        _exit(1);
    }
    waitpid(child, NULL, 0);
    fflush(stdout);
    line("system", system("cat by_vfork"));
    return 0;
}
