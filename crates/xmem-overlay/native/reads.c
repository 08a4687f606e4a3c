/* Functions of the C library that look at files: they see what was written. */
#include "overlay.h"

#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

/* Path only, links followed. */
#define READS(result, name, parameters, arguments)                              \
    PUBLIC result name parameters                                               \
    {                                                                           \
        NEXT(name);                                                             \
        path_t buffer;                                                          \
        const char *used = for_reading(AT_FDCWD, path, FOLLOW_LINK, buffer);    \
        return next_##name arguments;                                           \
    }

/* The same for a link itself. */
#define READS_LINK(result, name, parameters, arguments)                         \
    PUBLIC result name parameters                                               \
    {                                                                           \
        NEXT(name);                                                             \
        path_t buffer;                                                          \
        const char *used = for_reading(AT_FDCWD, path, KEEP_LINK, buffer);      \
        return next_##name arguments;                                           \
    }

/* A folder and flags of the `at` functions. An absolute path needs no folder. */
#define READS_AT(result, name, parameters, arguments)                           \
    PUBLIC result name parameters                                               \
    {                                                                           \
        NEXT(name);                                                             \
        path_t buffer;                                                          \
        const char *used = for_reading(folder, path, LINK_OF(flags), buffer);   \
        return next_##name arguments;                                           \
    }

READS(int, stat, (const char *path, struct stat *found), (used, found))
READS(int, stat64, (const char *path, struct stat64 *found), (used, found))
READS_LINK(int, lstat, (const char *path, struct stat *found), (used, found))
READS_LINK(int, lstat64, (const char *path, struct stat64 *found), (used, found))
READS_AT(int, fstatat, (int folder, const char *path, struct stat *found, int flags), (folder, used, found, flags))
READS_AT(int, fstatat64, (int folder, const char *path, struct stat64 *found, int flags), (folder, used, found, flags))
READS_AT(int, statx, (int folder, const char *path, int flags, unsigned mask, struct statx *found),
         (folder, used, flags, mask, found))
READS(int, access, (const char *path, int mode), (used, mode))
READS(int, euidaccess, (const char *path, int mode), (used, mode))
READS(int, eaccess, (const char *path, int mode), (used, mode))
READS_AT(int, faccessat, (int folder, const char *path, int mode, int flags), (folder, used, mode, flags))
READS(int, statvfs, (const char *path, struct statvfs *found), (used, found))
READS(ssize_t, getxattr, (const char *path, const char *name, void *value, size_t size), (used, name, value, size))
READS_LINK(ssize_t, lgetxattr, (const char *path, const char *name, void *value, size_t size), (used, name, value, size))
READS(ssize_t, listxattr, (const char *path, char *list, size_t size), (used, list, size))
READS_LINK(ssize_t, llistxattr, (const char *path, char *list, size_t size), (used, list, size))
READS(int, statfs, (const char *path, struct statfs *found), (used, found))
READS(int, statfs64, (const char *path, struct statfs64 *found), (used, found))
READS(int, statvfs64, (const char *path, struct statvfs64 *found), (used, found))
READS(long, pathconf, (const char *path, int name), (used, name))
READS(int, chdir, (const char *path), (used))

PUBLIC ssize_t readlinkat(int folder, const char *path, char *target, size_t size)
{
    path_t buffer, whole;
    const char *used = for_reading(folder, path, KEEP_LINK, buffer);
    ssize_t length = syscall(SYS_readlinkat, folder, used, target, size);
    if (length <= 0 || !used || strncmp(used, "/proc/", 6) != 0 || !has_twins())
        return length;
    /* Links of the kernel's, as /proc/self/exe, tell where a file is found. */
    ssize_t full = syscall(SYS_readlinkat, folder, used, whole, sizeof whole - 1);
    whole[full < 0 ? 0 : full] = 0;
    if (full <= 0 || !to_virtual(whole))
        return length;
    size_t now = strlen(whole);
    memcpy(target, whole, now < size ? now : size);
    return (ssize_t)(now < size ? now : size);
}

PUBLIC ssize_t readlink(const char *path, char *target, size_t size)
{
    return readlinkat(AT_FDCWD, path, target, size);
}

/* With _FORTIFY_SOURCE. */
PUBLIC ssize_t __readlink_chk(const char *path, char *target, size_t size, size_t room)
{
    return readlinkat(AT_FDCWD, path, target, size < room ? size : room);
}

PUBLIC ssize_t __readlinkat_chk(int folder, const char *path, char *target, size_t size, size_t room)
{
    return readlinkat(folder, path, target, size < room ? size : room);
}

/* Up to glibc 2.32, programs call these. */
#define OLD(name, type, which)                                                  \
    PUBLIC int name(int version, const char *path, struct type *found)          \
    {                                                                           \
        static int (*next)(int, const char *, struct type *);                   \
        if (!next)                                                              \
            next = (int (*)(int, const char *, struct type *))dlsym(RTLD_NEXT, #name); \
        path_t buffer;                                                          \
        return next(version, for_reading(AT_FDCWD, path, which, buffer), found); \
    }
OLD(__xstat, stat, FOLLOW_LINK)
OLD(__xstat64, stat64, FOLLOW_LINK)
OLD(__lxstat, stat, KEEP_LINK)
OLD(__lxstat64, stat64, KEEP_LINK)

#define OLD_AT(name, type)                                                      \
    PUBLIC int name(int version, int folder, const char *path, struct type *found, int flags) \
    {                                                                           \
        static int (*next)(int, int, const char *, struct type *, int);         \
        if (!next)                                                              \
            next = (int (*)(int, int, const char *, struct type *, int))dlsym(RTLD_NEXT, #name); \
        path_t buffer;                                                          \
        return next(version, folder, for_reading(folder, path, LINK_OF(flags), buffer), found, flags); \
    }
OLD_AT(__fxstatat, stat)
OLD_AT(__fxstatat64, stat64)
