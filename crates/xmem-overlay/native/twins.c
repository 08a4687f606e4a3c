/* Twins of folders, and copies of files. */
#include "overlay.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>

/* RENAME_EXCHANGE of linux/fs.h. */
#define EXCHANGE 2U

struct entry {
    uint64_t inode;
    int64_t offset;
    unsigned short size;
    unsigned char kind;
    char name[];
};

static int raw_stat(const char *physical, int flags, struct stat *found)
{
    return (int)syscall(SYS_newfstatat, AT_FDCWD, physical, found, flags);
}

/* Makes all folders of an absolute path below the private folder. */
static bool make_folders(char *physical)
{
    for (char *at = physical + strlen(overlay_folder()) + 1; *at; at++) {
        if (*at == '/') {
            *at = 0;
            syscall(SYS_mkdirat, AT_FDCWD, physical, 0700);
            *at = '/';
        }
    }
    return syscall(SYS_mkdirat, AT_FDCWD, physical, 0700) == 0 || errno == EEXIST;
}

bool mark_twin(const char *path)
{
    path_t marker;
    if (!in_tree("twins", path, marker) || strlen(marker) + 7 > sizeof marker)
        return false;
    strcat(marker, strlen(path) > 1 ? "/.twin" : ".twin");
    return make_folders(marker);
}

/* A path for something that is being made, of which no other thread has the same. */
static bool scratch(path_t out)
{
    static unsigned long count;
    char name[64];
    snprintf(name, sizeof name, "/%ld-%lu", syscall(SYS_gettid),
             __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED));
    path_t folder;
    if (!in_tree("build", "", folder))
        return false;
    syscall(SYS_mkdirat, AT_FDCWD, folder, 0700);
    return in_tree("build", name, out);
}

static void set_times(const char *physical, const struct stat *like)
{
    struct timespec times[2] = {like->st_atim, like->st_mtim};
    syscall(SYS_utimensat, AT_FDCWD, physical, times, 0);
}

/* Fills a new folder with links to the entries of another. */
static bool fill(const char *made, const char *path)
{
    char buffer[16384] __attribute__((aligned(8)));
    int from = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    int to = (int)syscall(SYS_openat, AT_FDCWD, made, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    bool good = from >= 0 && to >= 0;
    long size;
    while (good && (size = syscall(SYS_getdents64, from, buffer, sizeof buffer)) > 0) {
        for (long at = 0; at < size;) {
            struct entry *entry = (struct entry *)(buffer + at);
            at += entry->size;
            if (strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0)
                continue;
            path_t target;
            int length = snprintf(target, sizeof target, "%s/%s", strcmp(path, "/") ? path : "", entry->name);
            if (length < (int)sizeof target)
                syscall(SYS_symlinkat, target, to, entry->name);
        }
    }
    int failed = errno;
    if (from >= 0)
        syscall(SYS_close, from);
    if (to >= 0)
        syscall(SYS_close, to);
    errno = failed;
    return good;
}

bool make_twin(const char *path)
{
    path_t upper, made, parent;
    struct stat found;
    if (is_twin(path))
        return true;
    if (raw_stat(path, 0, &found) != 0 || !in_tree("upper", path, upper) || !scratch(made))
        return false;
    if (syscall(SYS_mkdirat, AT_FDCWD, made, 0700) != 0 || !fill(made, path))
        return false;
    syscall(SYS_fchmodat, AT_FDCWD, made, found.st_mode & 07777);
    set_times(made, &found);
    parent_of(path, parent);
    if (is_twin(parent)) {
        /* Its link stands there: they change places, so that one of both is always seen. */
        if (is_link_of_twin(upper, path)) {
            if (syscall(SYS_renameat2, AT_FDCWD, made, AT_FDCWD, upper, EXCHANGE) == 0) {
                if (syscall(SYS_unlinkat, AT_FDCWD, made, 0) == 0)
                    return mark_twin(path);
                /* Another thread was faster: its twin goes back. */
                syscall(SYS_renameat2, AT_FDCWD, made, AT_FDCWD, upper, EXCHANGE);
                return mark_twin(path);
            }
            /* Not every file system can do that. */
            syscall(SYS_unlinkat, AT_FDCWD, upper, 0);
        }
    } else {
        path_t above;
        if (!in_tree("upper", parent, above) || !make_folders(above))
            return false;
        /* Folders on the way to deeper twins may be there. */
        if (raw_stat(upper, AT_SYMLINK_NOFOLLOW, &found) == 0 && !is_twin(path)) {
            path_t shown;
            strcpy(shown, upper);
            bool good = fill(shown, path);
            return good && mark_twin(path);
        }
    }
    if (syscall(SYS_renameat2, AT_FDCWD, made, AT_FDCWD, upper, 0) != 0 && errno != ENOTEMPTY && errno != EEXIST)
        return false;
    return mark_twin(path);
}

static bool copy_content(int from, int to)
{
    char buffer[65536];
    for (;;) {
        ssize_t size = syscall(SYS_read, from, buffer, sizeof buffer);
        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0)
            return size == 0;
        for (ssize_t at = 0; at < size;) {
            ssize_t written = syscall(SYS_write, to, buffer + at, (size_t)(size - at));
            if (written < 0 && errno != EINTR)
                return false;
            at += written > 0 ? written : 0;
        }
    }
}

bool copy_up(const char *path, bool with_content)
{
    path_t upper, made;
    struct stat found;
    if (!in_tree("upper", path, upper))
        return false;
    if (!is_link_of_twin(upper, path))
        return true;
    if (raw_stat(path, AT_SYMLINK_NOFOLLOW, &found) != 0)
        return false;
    if (S_ISDIR(found.st_mode))
        return make_twin(path);
    if (!scratch(made))
        return false;
    if (S_ISLNK(found.st_mode)) {
        path_t target;
        ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, path, target, sizeof target - 1);
        if (length < 0)
            return false;
        target[length] = 0;
        if (syscall(SYS_symlinkat, target, AT_FDCWD, made) != 0)
            return false;
    } else if (S_ISREG(found.st_mode)) {
        int to = (int)syscall(SYS_openat, AT_FDCWD, made, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        int from = with_content ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0) : -1;
        bool good = to >= 0 && (!with_content || from >= 0);
        if (good && with_content)
            good = copy_content(from, to);
        int failed = errno;
        if (from >= 0)
            syscall(SYS_close, from);
        if (to >= 0)
            syscall(SYS_close, to);
        errno = failed;
        if (!good) {
            syscall(SYS_unlinkat, AT_FDCWD, made, 0);
            errno = failed;
            return false;
        }
        syscall(SYS_fchmodat, AT_FDCWD, made, found.st_mode & 07777);
        set_times(made, &found);
    } else {
        /* Pipes, sockets and devices are used as they are. */
        return true;
    }
    return syscall(SYS_renameat2, AT_FDCWD, made, AT_FDCWD, upper, 0) == 0;
}

static bool can_write(const char *physical)
{
    return syscall(SYS_faccessat, AT_FDCWD, physical, W_OK) == 0;
}

bool for_entry(int folder, const char *given, path_t path, path_t physical)
{
    path_t parent, where;
    if (!is_active()) {
        errno = 0;
        return false;
    }
    if (!resolve(folder, given, KEEP_LINK, path)) {
        if (errno == 0)
            errno = ENOENT;
        return false;
    }
    if (!is_covered(path)) {
        errno = 0;
        return false;
    }
    parent_of(path, parent);
    locate(parent, where);
    struct stat found;
    if (raw_stat(where, 0, &found) != 0)
        return false;
    if (!S_ISDIR(found.st_mode)) {
        errno = ENOTDIR;
        return false;
    }
    return can_write(where) && make_twin(parent) && in_tree("upper", path, physical);
}

bool for_writing(int folder, const char *given, int flags, path_t out)
{
    path_t path, where;
    struct stat found;
    enum follow follow =
        (flags & O_NOFOLLOW) || ((flags & O_CREAT) && (flags & O_EXCL)) ? KEEP_LINK : FOLLOW_LINK;
    if (!resolve(folder, given, follow, path))
        return false;
    strcpy(out, path);
    if (!is_covered(path))
        return true;
    locate(path, where);
    strcpy(out, where);
    if (raw_stat(where, AT_SYMLINK_NOFOLLOW, &found) == 0) {
        /* The kernel says what is wrong with a folder or a link; pipes and devices are used as they are. */
        if (!S_ISREG(found.st_mode) || ((flags & O_CREAT) && (flags & O_EXCL)))
            return true;
        if (!can_write(where))
            return false;
    } else if (!(flags & O_CREAT)) {
        return true;
    }
    path_t entry;
    if (!for_entry(AT_FDCWD, path, entry, out)) {
        if (errno == EACCES && raw_stat(where, 0, &found) == 0) {
            /* A file that can be written to in a folder that cannot. */
            path_t parent;
            parent_of(path, parent);
            if (!make_twin(parent) || !in_tree("upper", path, out))
                return false;
        } else {
            return false;
        }
    }
    return copy_up(path, !(flags & O_TRUNC));
}

void count_removed(void)
{
    path_t file;
    if (!in_tree("removed", "", file))
        return;
    int before = errno;
    int to = (int)syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (to >= 0) {
        ssize_t written = syscall(SYS_write, to, ".", 1);
        (void)written;
        syscall(SYS_close, to);
    }
    errno = before;
}
