/* Functions of the C library that make, remove, and rename files. */
#include "overlay.h"

#include <stdio.h>

static int raw_lstat(const char *physical, struct stat *found)
{
    return raw_stat(physical, AT_SYMLINK_NOFOLLOW, found);
}

/* What is at an entry that for_entry prepared: in the twin, or in the folder for which a link stands. */
static int at_entry(const struct place *place, struct stat *found)
{
    return raw_lstat(is_link_of_twin(place->physical, place->path) ? place->path : place->physical, found);
}

/* Prepares an entry, and does what is asked for if it is not covered. */
#define UNLESS_KEPT(folder, given, place, call) \
    struct place place;                         \
    if (for_entry(folder, given, &place) != KEPT) \
        return place.fate == PLAIN ? (call) : -1

static int make_folder(int folder, const char *given, mode_t mode)
{
    UNLESS_KEPT(folder, given, place, (int)syscall(SYS_mkdirat, place.folder, place.given, mode));
    return (int)syscall(SYS_mkdirat, AT_FDCWD, place.physical, mode);
}

PUBLIC int mkdir(const char *path, mode_t mode)
{
    return make_folder(AT_FDCWD, path, mode);
}

PUBLIC int mkdirat(int folder, const char *path, mode_t mode)
{
    return make_folder(folder, path, mode);
}

static int remove_entry(int folder, const char *given, int flags)
{
    struct stat found;
    UNLESS_KEPT(folder, given, place, (int)syscall(SYS_unlinkat, place.folder, place.given, flags));
    if (at_entry(&place, &found) != 0)
        return -1;
    bool is_folder = S_ISDIR(found.st_mode);
    if (is_folder != !!(flags & AT_REMOVEDIR) || (!is_folder && ends_as_folder(given))) {
        errno = is_folder ? EISDIR : ENOTDIR;
        return -1;
    }
    /* A twin has all entries, so that a folder with some cannot be removed. */
    if (is_folder && !make_twin(place.path))
        return -1;
    if (syscall(SYS_unlinkat, AT_FDCWD, place.physical, flags) != 0)
        return -1;
    if (raw_lstat(place.path, &found) == 0)
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

/* Prepares what is at an entry for being moved: a file is copied. A folder of the user's has links, which would lead
 * nowhere: it cannot be moved, as if it were on another file system. */
static bool for_moving(const struct place *place, const struct stat *found)
{
    if (!copy_up(place->path, true))
        return false;
    if (S_ISDIR(found->st_mode) ? has_links(place->path) : is_link_of_twin(place->physical, place->path)) {
        errno = EXDEV;
        return false;
    }
    return true;
}

static int rename_entry(int from, const char *old, int to, const char *new, unsigned flags)
{
    struct place source, target;
    struct stat found, other;
    if (for_entry(from, old, &source) == REFUSED || for_entry(to, new, &target) == REFUSED)
        return -1;
    if (source.fate == PLAIN && target.fate == PLAIN)
        return (int)syscall(SYS_renameat2, source.folder, source.given, target.folder, target.given, flags);
    /* One is a temporary file, the other is kept: as between file systems. */
    if (source.fate != target.fate) {
        errno = EXDEV;
        return -1;
    }
    bool is_exchange = flags & RENAME_EXCHANGE;
    if (at_entry(&source, &found) != 0)
        return -1;
    bool has_target = at_entry(&target, &other) == 0;
    if (has_target && (flags & RENAME_NOREPLACE)) {
        errno = EEXIST;
        return -1;
    }
    /* Twins first: only then does the kernel see what is wrong. */
    if (has_target && S_ISDIR(other.st_mode) && !make_twin(target.path))
        return -1;
    if (has_target && !is_exchange && S_ISDIR(other.st_mode) != S_ISDIR(found.st_mode)) {
        errno = S_ISDIR(other.st_mode) ? EISDIR : ENOTDIR;
        return -1;
    }
    if (!for_moving(&source, &found) || (is_exchange && has_target && !for_moving(&target, &other)))
        return -1;
    if (syscall(SYS_renameat2, AT_FDCWD, source.physical, AT_FDCWD, target.physical, flags) != 0)
        return -1;
    if (raw_lstat(source.path, &other) == 0)
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

/* True if a path that is not covered leads to an open file of the library's, which has no name (O_TMPFILE). */
static bool is_nameless(const char *path)
{
    path_t target;
    ssize_t length = -1;
    if (strncmp(path, "/proc/", 6) == 0)
        length = syscall(SYS_readlinkat, AT_FDCWD, path, target, sizeof target - 1);
    if (length < 0)
        return false;
    target[length] = 0;
    return to_virtual(target);
}

static int make_link(int from, const char *old, int to, const char *new, int flags)
{
    struct place source, target;
    path_t resolved, physical;
    if (is_active() && (flags & AT_SYMLINK_FOLLOW) && resolve(from, old, FOLLOW_LINK, resolved, physical))
        old = resolved;
    if (for_entry(from, old, &source) == REFUSED || for_entry(to, new, &target) == REFUSED)
        return -1;
    if (source.fate == PLAIN && target.fate == PLAIN)
        return (int)syscall(SYS_linkat, source.folder, source.given, target.folder, target.given, flags);
    if (target.fate == KEPT && (is_nameless(source.given) || (flags & AT_EMPTY_PATH)))
        return (int)syscall(SYS_linkat, source.folder, source.given, AT_FDCWD, target.physical, flags);
    if (source.fate != target.fate) {
        errno = EXDEV;
        return -1;
    }
    struct stat found;
    if (at_entry(&source, &found) != 0)
        return -1;
    if (S_ISDIR(found.st_mode)) {
        errno = EPERM;
        return -1;
    }
    if (!for_moving(&source, &found))
        return -1;
    return (int)syscall(SYS_linkat, AT_FDCWD, source.physical, AT_FDCWD, target.physical, 0);
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
    UNLESS_KEPT(folder, given, place, (int)syscall(SYS_symlinkat, target, place.folder, place.given));
    return (int)syscall(SYS_symlinkat, target, AT_FDCWD, place.physical);
}

PUBLIC int symlink(const char *target, const char *path)
{
    return symlinkat(target, AT_FDCWD, path);
}

PUBLIC int mknodat(int folder, const char *given, mode_t mode, dev_t device)
{
    UNLESS_KEPT(folder, given, place, (int)syscall(SYS_mknodat, place.folder, place.given, mode, device));
    return (int)syscall(SYS_mknodat, AT_FDCWD, place.physical, mode, device);
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

/* Up to glibc 2.32, programs call these. */
PUBLIC int __xmknod(int version, const char *path, mode_t mode, dev_t *device)
{
    (void)version;
    return mknodat(AT_FDCWD, path, mode, *device);
}

PUBLIC int __xmknodat(int version, int folder, const char *path, mode_t mode, dev_t *device)
{
    (void)version;
    return mknodat(folder, path, mode, *device);
}
