/* Functions of the C library that make, remove, rename and change files. */
#include "overlay.h"

#include <stdio.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <utime.h>

static int raw_lstat(const char *physical, struct stat *found)
{
    return (int)syscall(SYS_newfstatat, AT_FDCWD, physical, found, AT_SYMLINK_NOFOLLOW);
}

/* What is at an entry that for_entry prepared: in the twin, or in the folder for which a link stands. */
static int at_entry(const char *physical, const char *path, struct stat *found)
{
    return raw_lstat(is_link_of_twin(physical, path) ? path : physical, found);
}

/* The statement for a path that is not covered, or cannot be changed. */
#define UNLESS_COVERED(folder, given, path, physical, call) \
    path_t path, physical;                                  \
    if (!for_entry(folder, given, path, physical))          \
        return errno == 0 ? (call) : -1

static int make_folder(int folder, const char *given, mode_t mode)
{
    UNLESS_COVERED(folder, given, path, physical, (int)syscall(SYS_mkdirat, folder, given, mode));
    struct stat found;
    if (raw_lstat(physical, &found) == 0) {
        errno = EEXIST;
        return -1;
    }
    /* First, as others look into the folder as soon as it is there. */
    if (!mark_twin(path))
        return -1;
    return (int)syscall(SYS_mkdirat, AT_FDCWD, physical, mode);
}

PUBLIC int mkdir(const char *path, mode_t mode)
{
    return make_folder(AT_FDCWD, path, mode);
}

PUBLIC int mkdirat(int folder, const char *path, mode_t mode)
{
    return make_folder(folder, path, mode);
}

/* The marker of a folder, and of all in it. */
static void forget_twin(const char *path)
{
    path_t marker;
    int before = errno;
    if (in_tree("twins", path, marker) && strlen(marker) + 7 < sizeof marker) {
        size_t length = strlen(marker);
        strcpy(marker + length, "/.twin");
        syscall(SYS_unlinkat, AT_FDCWD, marker, AT_REMOVEDIR);
        marker[length] = 0;
        syscall(SYS_unlinkat, AT_FDCWD, marker, AT_REMOVEDIR);
    }
    errno = before;
}

static int remove_entry(int folder, const char *given, int flags)
{
    struct stat found;
    UNLESS_COVERED(folder, given, path, physical, (int)syscall(SYS_unlinkat, folder, given, flags));
    if (at_entry(physical, path, &found) != 0)
        return -1;
    bool is_folder = S_ISDIR(found.st_mode);
    if (is_folder != !!(flags & AT_REMOVEDIR)) {
        errno = is_folder ? EISDIR : ENOTDIR;
        return -1;
    }
    bool was_there = is_link_of_twin(physical, path);
    /* A twin has all entries, so that a folder with some cannot be removed. */
    if (is_folder && was_there && !make_twin(path))
        return -1;
    if (syscall(SYS_unlinkat, AT_FDCWD, physical, flags) != 0)
        return -1;
    if (is_folder)
        forget_twin(path);
    if (raw_lstat(path, &found) == 0)
        count_removed();
    return 0;
}

PUBLIC int unlink(const char *path)
{
    return remove_entry(AT_FDCWD, path, 0);
}

PUBLIC int unlinkat(int folder, const char *path, int flags)
{
    return remove_entry(folder, path, flags);
}

PUBLIC int rmdir(const char *path)
{
    return remove_entry(AT_FDCWD, path, AT_REMOVEDIR);
}

PUBLIC int remove(const char *path)
{
    int result = remove_entry(AT_FDCWD, path, 0);
    return result != 0 && (errno == EISDIR || errno == EPERM) ? remove_entry(AT_FDCWD, path, AT_REMOVEDIR) : result;
}

/* Moves the markers of a folder and of all in it. */
static void move_twin(const char *from, const char *to)
{
    path_t marker, moved;
    int before = errno;
    if (in_tree("twins", from, marker) && in_tree("twins", to, moved)) {
        /* Makes the folders above. */
        mark_twin(to);
        forget_twin(to);
        syscall(SYS_renameat2, AT_FDCWD, marker, AT_FDCWD, moved, 0);
    }
    errno = before;
}

static int rename_entry(int from, const char *old, int to, const char *new, unsigned flags)
{
    path_t source, source_at, target, target_at;
    struct stat found, other;
    bool has_source = for_entry(from, old, source, source_at);
    if (!has_source && errno != 0)
        return -1;
    bool has_target = for_entry(to, new, target, target_at);
    if (!has_target && errno != 0)
        return -1;
    if (!has_source && !has_target)
        return (int)syscall(SYS_renameat2, from, old, to, new, flags);
    /* One is a temporary file, the other is kept: as between file systems. */
    if (!has_source || !has_target) {
        errno = EXDEV;
        return -1;
    }
    if (flags & ~1U) {
        errno = EINVAL;
        return -1;
    }
    if (at_entry(source_at, source, &found) != 0)
        return -1;
    bool was_there = is_link_of_twin(source_at, source);
    if (S_ISDIR(found.st_mode) && (was_there || raw_lstat(source, &other) == 0)) {
        errno = EXDEV;
        return -1;
    }
    if (at_entry(target_at, target, &other) == 0) {
        if (flags & 1U) {
            errno = EEXIST;
            return -1;
        }
        if (S_ISDIR(other.st_mode) && !S_ISDIR(found.st_mode)) {
            errno = EISDIR;
            return -1;
        }
        if (S_ISDIR(other.st_mode) && is_link_of_twin(target_at, target) && !make_twin(target))
            return -1;
    }
    if (!copy_up(source, true))
        return -1;
    /* First, as others look into the folder as soon as it is there. */
    if (S_ISDIR(found.st_mode))
        move_twin(source, target);
    if (syscall(SYS_renameat2, AT_FDCWD, source_at, AT_FDCWD, target_at, flags) != 0) {
        if (S_ISDIR(found.st_mode))
            move_twin(target, source);
        return -1;
    }
    if (raw_lstat(source, &other) == 0)
        count_removed();
    return 0;
}

PUBLIC int rename(const char *old, const char *new)
{
    return rename_entry(AT_FDCWD, old, AT_FDCWD, new, 0);
}

PUBLIC int renameat(int from, const char *old, int to, const char *new)
{
    return rename_entry(from, old, to, new, 0);
}

PUBLIC int renameat2(int from, const char *old, int to, const char *new, unsigned flags)
{
    return rename_entry(from, old, to, new, flags);
}

static int make_link(int from, const char *old, int to, const char *new, int flags)
{
    path_t source, source_at, target, target_at, resolved;
    if (is_active() && (flags & AT_SYMLINK_FOLLOW) && resolve(from, old, FOLLOW_LINK, resolved))
        old = resolved;
    bool has_source = for_entry(from, old, source, source_at);
    if (!has_source && errno != 0)
        return -1;
    bool has_target = for_entry(to, new, target, target_at);
    if (!has_target && errno != 0)
        return -1;
    if (!has_source && !has_target)
        return (int)syscall(SYS_linkat, from, old, to, new, flags);
    if (!has_source || !has_target) {
        errno = EXDEV;
        return -1;
    }
    if (!copy_up(source, true))
        return -1;
    return (int)syscall(SYS_linkat, AT_FDCWD, source_at, AT_FDCWD, target_at, 0);
}

PUBLIC int link(const char *old, const char *new)
{
    return make_link(AT_FDCWD, old, AT_FDCWD, new, 0);
}

PUBLIC int linkat(int from, const char *old, int to, const char *new, int flags)
{
    return make_link(from, old, to, new, flags);
}

PUBLIC int symlinkat(const char *target, int folder, const char *given)
{
    UNLESS_COVERED(folder, given, path, physical, (int)syscall(SYS_symlinkat, target, folder, given));
    return (int)syscall(SYS_symlinkat, target, AT_FDCWD, physical);
}

PUBLIC int symlink(const char *target, const char *path)
{
    return symlinkat(target, AT_FDCWD, path);
}

PUBLIC int mknodat(int folder, const char *given, mode_t mode, dev_t device)
{
    UNLESS_COVERED(folder, given, path, physical, (int)syscall(SYS_mknodat, folder, given, mode, device));
    return (int)syscall(SYS_mknodat, AT_FDCWD, physical, mode, device);
}

PUBLIC int mknod(const char *path, mode_t mode, dev_t device)
{
    return mknodat(AT_FDCWD, path, mode, device);
}

PUBLIC int mkfifo(const char *path, mode_t mode)
{
    return mknodat(AT_FDCWD, path, mode | S_IFIFO, 0);
}

PUBLIC int mkfifoat(int folder, const char *path, mode_t mode)
{
    return mknodat(folder, path, mode | S_IFIFO, 0);
}

/* Prepares a file or folder for a change of its attributes; false if it is not covered (errno is 0) or impossible. */
static bool for_change(int folder, const char *given, enum follow follow, path_t physical)
{
    path_t resolved, path;
    struct stat found;
    errno = 0;
    if (!is_active())
        return false;
    if (!resolve(folder, given, follow, resolved))
        return false;
    errno = 0;
    if (!is_covered(resolved))
        return false;
    locate(resolved, path);
    if (raw_lstat(path, &found) != 0)
        return false;
    if (found.st_uid != geteuid() && geteuid() != 0) {
        errno = EPERM;
        return false;
    }
    path_t parent;
    parent_of(resolved, parent);
    if (!make_twin(parent) || !copy_up(resolved, true) || !in_tree("upper", resolved, physical))
        return false;
    return true;
}

#define CHANGES(result, name, parameters, folder, which, plain, changed) \
    PUBLIC result name parameters                                        \
    {                                                                    \
        path_t physical;                                                 \
        if (!for_change(folder, path, which, physical))                  \
            return errno == 0 ? (plain) : -1;                            \
        return (changed);                                                \
    }
#define LINK_OF(flags) ((flags)&AT_SYMLINK_NOFOLLOW ? KEEP_LINK : FOLLOW_LINK)

CHANGES(int, chmod, (const char *path, mode_t mode), AT_FDCWD, FOLLOW_LINK,
        (int)syscall(SYS_fchmodat, AT_FDCWD, path, mode), (int)syscall(SYS_fchmodat, AT_FDCWD, physical, mode))
CHANGES(int, fchmodat, (int folder, const char *path, mode_t mode, int flags), folder, LINK_OF(flags),
        (int)syscall(SYS_fchmodat, folder, path, mode), (int)syscall(SYS_fchmodat, AT_FDCWD, physical, mode))
CHANGES(int, fchownat, (int folder, const char *path, uid_t user, gid_t group, int flags), folder, LINK_OF(flags),
        (int)syscall(SYS_fchownat, folder, path, user, group, flags),
        (int)syscall(SYS_fchownat, AT_FDCWD, physical, user, group, AT_SYMLINK_NOFOLLOW))
CHANGES(int, chown, (const char *path, uid_t user, gid_t group), AT_FDCWD, FOLLOW_LINK,
        (int)syscall(SYS_fchownat, AT_FDCWD, path, user, group, 0),
        (int)syscall(SYS_fchownat, AT_FDCWD, physical, user, group, 0))
CHANGES(int, lchown, (const char *path, uid_t user, gid_t group), AT_FDCWD, KEEP_LINK,
        (int)syscall(SYS_fchownat, AT_FDCWD, path, user, group, AT_SYMLINK_NOFOLLOW),
        (int)syscall(SYS_fchownat, AT_FDCWD, physical, user, group, AT_SYMLINK_NOFOLLOW))
CHANGES(int, truncate, (const char *path, off_t size), AT_FDCWD, FOLLOW_LINK, (int)syscall(SYS_truncate, path, size),
        (int)syscall(SYS_truncate, physical, size))
CHANGES(int, truncate64, (const char *path, off64_t size), AT_FDCWD, FOLLOW_LINK,
        (int)syscall(SYS_truncate, path, size), (int)syscall(SYS_truncate, physical, size))
CHANGES(int, setxattr, (const char *path, const char *name, const void *value, size_t size, int flags), AT_FDCWD,
        FOLLOW_LINK, (int)syscall(SYS_setxattr, path, name, value, size, flags),
        (int)syscall(SYS_setxattr, physical, name, value, size, flags))
CHANGES(int, lsetxattr, (const char *path, const char *name, const void *value, size_t size, int flags), AT_FDCWD,
        KEEP_LINK, (int)syscall(SYS_lsetxattr, path, name, value, size, flags),
        (int)syscall(SYS_lsetxattr, physical, name, value, size, flags))
CHANGES(int, removexattr, (const char *path, const char *name), AT_FDCWD, FOLLOW_LINK,
        (int)syscall(SYS_removexattr, path, name), (int)syscall(SYS_removexattr, physical, name))

/* The path of an open file that is covered and stands where the user has it; false if there is none. */
static bool path_of(int descriptor, path_t path)
{
    path_t link, resolved;
    int before = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = is_active() ? syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof(path_t) - 1) : -1;
    if (length > 0) {
        path[length] = 0;
        strcpy(resolved, path);
        to_virtual(resolved);
    }
    errno = before;
    return length > 0 && path[0] == '/' && strcmp(path, resolved) == 0 && is_covered(path);
}

static int set_times_at(int folder, const char *path, const struct timespec times[2], int flags)
{
    path_t physical, named;
    if (!path) {
        if (!path_of(folder, named))
            return (int)syscall(SYS_utimensat, folder, NULL, times, flags);
        path = named;
    }
    if (!for_change(folder, path, LINK_OF(flags), physical))
        return errno == 0 ? (int)syscall(SYS_utimensat, folder, path, times, flags) : -1;
    return (int)syscall(SYS_utimensat, AT_FDCWD, physical, times, AT_SYMLINK_NOFOLLOW);
}

PUBLIC int utimensat(int folder, const char *path, const struct timespec times[2], int flags)
{
    return set_times_at(folder, path, times, flags);
}

PUBLIC int futimens(int descriptor, const struct timespec times[2])
{
    return set_times_at(descriptor, NULL, times, 0);
}

static int set_times_micro(const char *path, const struct timeval times[2], int flags)
{
    struct timespec exact[2];
    for (int at = 0; times && at < 2; at++)
        exact[at] = (struct timespec){times[at].tv_sec, times[at].tv_usec * 1000};
    return set_times_at(AT_FDCWD, path, times ? exact : NULL, flags);
}

PUBLIC int utimes(const char *path, const struct timeval times[2])
{
    return set_times_micro(path, times, 0);
}

PUBLIC int lutimes(const char *path, const struct timeval times[2])
{
    return set_times_micro(path, times, AT_SYMLINK_NOFOLLOW);
}

PUBLIC int utime(const char *path, const struct utimbuf *times)
{
    struct timespec exact[2];
    if (times) {
        exact[0] = (struct timespec){times->actime, 0};
        exact[1] = (struct timespec){times->modtime, 0};
    }
    return set_times_at(AT_FDCWD, path, times ? exact : NULL, 0);
}

PUBLIC int fchmod(int descriptor, mode_t mode)
{
    path_t path;
    return path_of(descriptor, path) ? chmod(path, mode) : (int)syscall(SYS_fchmod, descriptor, mode);
}

PUBLIC int fchown(int descriptor, uid_t user, gid_t group)
{
    path_t path;
    return path_of(descriptor, path) ? chown(path, user, group) : (int)syscall(SYS_fchown, descriptor, user, group);
}
