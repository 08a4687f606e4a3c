/* Twins of folders. */
#include "overlay.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>

/* RENAME_EXCHANGE of linux/fs.h. */
#define EXCHANGE 2U

struct lock take_lock(void)
{
    struct lock lock;
    path_t file;
    uint64_t all = ~0ULL;
    /* A handler that opens a file would wait for itself. */
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &lock.signals, sizeof all);
    lock.file = in_tree("lock", "", file)
                    ? (int)syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CREAT | O_CLOEXEC, 0600)
                    : -1;
    if (lock.file >= 0)
        syscall(SYS_fchmod, lock.file, 0600);
    while (lock.file >= 0 && syscall(SYS_flock, lock.file, LOCK_EX) != 0 && errno == EINTR)
        ;
    return lock;
}

void return_lock(struct lock lock)
{
    int before = errno;
    if (lock.file >= 0) {
        /* Closing is not enough if another thread has forked. */
        syscall(SYS_flock, lock.file, LOCK_UN);
        syscall(SYS_close, lock.file);
    }
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &lock.signals, NULL, sizeof lock.signals);
    errno = before;
}

/* The mask for the modes of new files is the process's, and may be any. */
static bool make_own_folder(const char *physical)
{
    return syscall(SYS_mkdirat, AT_FDCWD, physical, 0700) == 0 && syscall(SYS_fchmodat, AT_FDCWD, physical, 0700) == 0;
}

/* Makes all folders of an absolute path below the private folder. */
static bool make_folders(char *physical)
{
    for (char *at = physical + strlen(overlay_folder()) + 1; *at; at++) {
        if (*at == '/') {
            *at = 0;
            make_own_folder(physical);
            *at = '/';
        }
    }
    return make_own_folder(physical) || errno == EEXIST;
}

static bool mark_root(const char *path)
{
    path_t marker;
    if (!in_tree("twins", path, marker) || strlen(marker) + 7 > sizeof marker)
        return false;
    strcat(marker, strlen(path) > 1 ? "/.twin" : ".twin");
    return make_folders(marker);
}

bool scratch(path_t out)
{
    static unsigned long count;
    char name[64];
    snprintf(name, sizeof name, "/%ld-%lu", syscall(SYS_gettid), __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED));
    path_t folder;
    if (!in_tree("build", "", folder))
        return false;
    make_own_folder(folder);
    return in_tree("build", name, out);
}

static void set_times(const char *physical, const struct stat *like)
{
    struct timespec times[2] = {like->st_atim, like->st_mtim};
    syscall(SYS_utimensat, AT_FDCWD, physical, times, AT_SYMLINK_NOFOLLOW);
}

void set_attributes(const char *physical, const struct stat *like)
{
    struct stat found;
    /* Only root can do that. */
    if (raw_stat(physical, AT_SYMLINK_NOFOLLOW, &found) == 0 &&
        (found.st_uid != like->st_uid || found.st_gid != like->st_gid))
        syscall(SYS_fchownat, AT_FDCWD, physical, like->st_uid, like->st_gid, AT_SYMLINK_NOFOLLOW);
    if (!S_ISLNK(like->st_mode))
        syscall(SYS_fchmodat, AT_FDCWD, physical, like->st_mode & 07777);
    set_times(physical, like);
}

bool put(const char *made, const char *upper, unsigned flags)
{
    path_t parent;
    struct stat found;
    parent_of(upper, parent);
    bool is_there = raw_stat(parent, 0, &found) == 0;
    bool good = syscall(SYS_renameat2, AT_FDCWD, made, AT_FDCWD, upper, flags) == 0;
    if (!good && errno == EACCES && is_there) {
        /* The twin of a folder that the user may not write to, with a file that they may change. */
        syscall(SYS_fchmodat, AT_FDCWD, parent, (found.st_mode & 07777) | 0700);
        good = syscall(SYS_renameat2, AT_FDCWD, made, AT_FDCWD, upper, flags) == 0;
        int failed = errno;
        syscall(SYS_fchmodat, AT_FDCWD, parent, found.st_mode & 07777);
        errno = failed;
    }
    if (good && is_there)
        set_times(parent, &found);
    return good;
}

/* Fills a folder with links to the entries of another, but for those that it has. */
static bool fill(const char *made, const char *path)
{
    char buffer[16384] __attribute__((aligned(8)));
    int from = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    int to = (int)syscall(SYS_openat, AT_FDCWD, made, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    bool good = from >= 0 && to >= 0;
    long size = 0;
    while (good && (size = syscall(SYS_getdents64, from, buffer, sizeof buffer)) > 0) {
        for (long at = 0; good && at < size;) {
            struct entry *entry = (struct entry *)(buffer + at);
            at += entry->size;
            if (strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0)
                continue;
            path_t target;
            int length = snprintf(target, sizeof target, "%s/%s", strcmp(path, "/") ? path : "", entry->name);
            if (length < (int)sizeof target)
                good = syscall(SYS_symlinkat, target, to, entry->name) == 0 || errno == EEXIST;
        }
    }
    good = good && size == 0;
    int failed = errno;
    if (from >= 0)
        syscall(SYS_close, from);
    if (to >= 0)
        syscall(SYS_close, to);
    errno = failed;
    return good;
}

/* Makes a twin in `build`. */
static bool build(const char *path, path_t made)
{
    struct stat found;
    if (raw_stat(path, 0, &found) != 0 || !scratch(made) || !make_own_folder(made) ||
        !fill(made, path))
        return false;
    set_attributes(made, &found);
    return true;
}

/* Replaces the link to a folder by its twin. They change places, so that one of both is always seen. */
static bool replace_link(const char *path)
{
    path_t made, upper;
    if (!build(path, made) || !in_tree("upper", path, upper))
        return false;
    if (put(made, upper, EXCHANGE))
        return syscall(SYS_unlinkat, AT_FDCWD, made, 0) == 0;
    /* Not every file system can do that. */
    return syscall(SYS_unlinkat, AT_FDCWD, upper, 0) == 0 && put(made, upper, 0);
}

/* Calls back for each entry of a folder, until that returns false. */
static bool for_each(const char *physical, const char *path, bool (*call)(const char *physical, const char *path))
{
    char buffer[2048] __attribute__((aligned(8)));
    int folder = (int)syscall(SYS_openat, AT_FDCWD, physical, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    bool good = folder >= 0;
    long size;
    while (good && (size = syscall(SYS_getdents64, folder, buffer, sizeof buffer)) > 0) {
        for (long at = 0; good && at < size;) {
            struct entry *entry = (struct entry *)(buffer + at);
            at += entry->size;
            path_t inner, inner_path;
            if (strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0)
                continue;
            if (snprintf(inner, sizeof inner, "%s/%s", physical, entry->name) < (int)sizeof inner &&
                snprintf(inner_path, sizeof inner_path, "%s/%s", strcmp(path, "/") ? path : "", entry->name) <
                    (int)sizeof inner_path)
                good = call(inner, inner_path);
        }
    }
    int failed = errno;
    if (folder >= 0)
        syscall(SYS_close, folder);
    errno = failed;
    return good;
}

/* Turns a folder that is only there because of deeper twins into a twin. */
static bool fill_in_place(const char *physical, const char *path)
{
    struct stat found;
    if (raw_stat(physical, AT_SYMLINK_NOFOLLOW, &found) != 0)
        return false;
    if (!S_ISDIR(found.st_mode) || is_root(path))
        return true;
    if (!for_each(physical, path, fill_in_place) || !fill(physical, path))
        return false;
    if (raw_stat(path, 0, &found) == 0)
        set_attributes(physical, &found);
    return true;
}

/* Makes a twin that stands in none. */
static bool make_root(const char *path)
{
    path_t upper, parent, above, made;
    bool is_top = strcmp(path, "/") == 0;
    parent_of(path, parent);
    if (!in_tree("upper", is_top ? "" : path, upper) || !in_tree("upper", is_top ? "" : parent, above) ||
        !make_folders(above))
        return false;
    if (exists(upper))
        return fill_in_place(upper, path) && mark_root(path);
    return build(path, made) && syscall(SYS_renameat2, AT_FDCWD, made, AT_FDCWD, upper, 0) == 0 && mark_root(path);
}

static bool make_twin_with_lock(const char *path)
{
    path_t at;
    enum state state = state_of_top();
    for (size_t end = 2; state != REAL && path[end - 1]; end++) {
        if (path[end] && path[end] != '/')
            continue;
        memcpy(at, path, end);
        at[end] = 0;
        bool was_twin = state == TWIN;
        step(at, &state);
        if (was_twin && state == REAL) {
            if (!replace_link(at))
                return false;
            state = TWIN;
        }
    }
    return state == TWIN || make_root(path);
}

bool make_twin(const char *path)
{
    path_t physical;
    locate(path, physical);
    if (strcmp(physical, path) != 0)
        return true;
    struct lock lock = take_lock();
    bool good = make_twin_with_lock(path);
    return_lock(lock);
    return good;
}

static bool has_none(const char *physical, const char *path)
{
    struct stat found;
    if (is_link_of_twin(physical, path))
        return false;
    return raw_stat(physical, AT_SYMLINK_NOFOLLOW, &found) != 0 || !S_ISDIR(found.st_mode) ||
           for_each(physical, path, has_none);
}

bool has_links(const char *path)
{
    path_t upper;
    return !in_tree("upper", path, upper) || !has_none(upper, path);
}
