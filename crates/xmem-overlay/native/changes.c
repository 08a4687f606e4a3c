/* Functions of the C library that change attributes and sizes of files. */
#include "overlay.h"

#include <sys/time.h>
#include <sys/xattr.h>
#include <utime.h>

/* A function of a path: what it does with a path that is not covered (`place.given`), and with a kept one
 * (`place.physical`). */
#define CHANGES(name, parameters, folder, which, by_writers, plain, kept)        \
    PUBLIC int name parameters                                                   \
    {                                                                            \
        struct place place;                                                      \
        switch (for_change(folder, path, which, by_writers, &place)) {           \
        case PLAIN:                                                              \
            return (int)syscall plain;                                           \
        case KEPT:                                                               \
            return (int)syscall kept;                                            \
        case IGNORED:                                                            \
            return 0;                                                            \
        default:                                                                 \
            return -1;                                                           \
        }                                                                        \
    }

CHANGES(chmod, (const char *path, mode_t mode), AT_FDCWD, FOLLOW_LINK, false,
        (SYS_fchmodat, place.folder, place.given, mode), (SYS_fchmodat, AT_FDCWD, place.physical, mode))
CHANGES(fchownat, (int folder, const char *path, uid_t user, gid_t group, int flags), folder, LINK_OF(flags), false,
        (SYS_fchownat, place.folder, place.given, user, group, flags),
        (SYS_fchownat, AT_FDCWD, place.physical, user, group, AT_SYMLINK_NOFOLLOW))
CHANGES(truncate, (const char *path, off_t size), AT_FDCWD, FOLLOW_LINK, true, (SYS_truncate, place.given, size),
        (SYS_truncate, place.physical, size))
CHANGES(setxattr, (const char *path, const char *name, const void *value, size_t size, int flags), AT_FDCWD,
        FOLLOW_LINK, true, (SYS_setxattr, place.given, name, value, size, flags),
        (SYS_setxattr, place.physical, name, value, size, flags))
CHANGES(lsetxattr, (const char *path, const char *name, const void *value, size_t size, int flags), AT_FDCWD,
        KEEP_LINK, true, (SYS_lsetxattr, place.given, name, value, size, flags),
        (SYS_lsetxattr, place.physical, name, value, size, flags))
CHANGES(removexattr, (const char *path, const char *name), AT_FDCWD, FOLLOW_LINK, true,
        (SYS_removexattr, place.given, name), (SYS_removexattr, place.physical, name))
CHANGES(lremovexattr, (const char *path, const char *name), AT_FDCWD, KEEP_LINK, true,
        (SYS_lremovexattr, place.given, name), (SYS_lremovexattr, place.physical, name))

PUBLIC int truncate64(const char *path, off64_t size)
{
    return truncate(path, size);
}

PUBLIC int chown(const char *path, uid_t user, gid_t group)
{
    return fchownat(AT_FDCWD, path, user, group, 0);
}

PUBLIC int lchown(const char *path, uid_t user, gid_t group)
{
    return fchownat(AT_FDCWD, path, user, group, AT_SYMLINK_NOFOLLOW);
}

PUBLIC int fchmodat(int folder, const char *path, mode_t mode, int flags)
{
    NEXT(fchmodat);
    struct place place;
    switch (for_change(folder, path, LINK_OF(flags), false, &place)) {
    case PLAIN:
        return next_fchmodat(place.folder, place.given, mode, flags);
    case KEPT:
        return next_fchmodat(AT_FDCWD, place.physical, mode, flags);
    case IGNORED:
        return 0;
    default:
        return -1;
    }
}

PUBLIC int lchmod(const char *path, mode_t mode)
{
    return fchmodat(AT_FDCWD, path, mode, AT_SYMLINK_NOFOLLOW);
}

bool path_of_real(int descriptor, path_t path)
{
    struct stat opened, found;
    int before = errno;
    bool is_real = is_active() && path_behind(descriptor, path) && path[0] == '/' && is_covered(path) &&
                   syscall(SYS_fstat, descriptor, &opened) == 0 && raw_stat(path, AT_SYMLINK_NOFOLLOW, &found) == 0 &&
                   opened.st_dev == found.st_dev && opened.st_ino == found.st_ino;
    errno = before;
    return is_real;
}

/* A function of a descriptor: a file of the user's is copied, and the copy is changed. */
#define CHANGES_OPEN(name, parameters, by_path, plain)                          \
    PUBLIC int name parameters                                                  \
    {                                                                           \
        path_t path;                                                            \
        return path_of_real(descriptor, path) ? by_path : (int)syscall plain;   \
    }

CHANGES_OPEN(fchmod, (int descriptor, mode_t mode), chmod(path, mode), (SYS_fchmod, descriptor, mode))
CHANGES_OPEN(fchown, (int descriptor, uid_t user, gid_t group), lchown(path, user, group),
             (SYS_fchown, descriptor, user, group))
CHANGES_OPEN(fsetxattr, (int descriptor, const char *name, const void *value, size_t size, int flags),
             lsetxattr(path, name, value, size, flags), (SYS_fsetxattr, descriptor, name, value, size, flags))
CHANGES_OPEN(fremovexattr, (int descriptor, const char *name), lremovexattr(path, name),
             (SYS_fremovexattr, descriptor, name))

static int set_times_at(int folder, const char *path, const struct timespec times[2], int flags)
{
    struct place place;
    switch (for_change(folder, path, LINK_OF(flags), !times, &place)) {
    case PLAIN:
        return (int)syscall(SYS_utimensat, place.folder, place.given, times, flags);
    case KEPT:
        return (int)syscall(SYS_utimensat, AT_FDCWD, place.physical, times, AT_SYMLINK_NOFOLLOW);
    case IGNORED:
        return 0;
    default:
        return -1;
    }
}

PUBLIC int utimensat(int folder, const char *path, const struct timespec times[2], int flags)
{
    return set_times_at(folder, path, times, flags);
}

CHANGES_OPEN(futimens, (int descriptor, const struct timespec times[2]),
             set_times_at(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW), (SYS_utimensat, descriptor, NULL, times, 0))

/* Times in microseconds, as exact ones; null for now. */
static const struct timespec *exact(const struct timeval times[2], struct timespec out[2])
{
    for (int at = 0; times && at < 2; at++)
        out[at] = (struct timespec){times[at].tv_sec, times[at].tv_usec * 1000};
    return times ? out : NULL;
}

PUBLIC int utimes(const char *path, const struct timeval times[2])
{
    struct timespec buffer[2];
    return set_times_at(AT_FDCWD, path, exact(times, buffer), 0);
}

PUBLIC int lutimes(const char *path, const struct timeval times[2])
{
    struct timespec buffer[2];
    return set_times_at(AT_FDCWD, path, exact(times, buffer), AT_SYMLINK_NOFOLLOW);
}

PUBLIC int futimes(int descriptor, const struct timeval times[2])
{
    struct timespec buffer[2];
    return futimens(descriptor, exact(times, buffer));
}

PUBLIC int futimesat(int folder, const char *path, const struct timeval times[2])
{
    struct timespec buffer[2];
    return path ? set_times_at(folder, path, exact(times, buffer), 0) : futimes(folder, times);
}

PUBLIC int utime(const char *path, const struct utimbuf *times)
{
    struct timespec buffer[2];
    if (times) {
        buffer[0] = (struct timespec){times->actime, 0};
        buffer[1] = (struct timespec){times->modtime, 0};
    }
    return set_times_at(AT_FDCWD, path, times ? buffer : NULL, 0);
}
