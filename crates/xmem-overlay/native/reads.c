/* Functions of the C library that look at files: they see what was written. */
#include "overlay.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

static enum follow follows(int flags)
{
    return flags & AT_SYMLINK_NOFOLLOW ? KEEP_LINK : FOLLOW_LINK;
}

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
        const char *used = for_reading(folder, path, follows(flags), buffer);   \
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
READS_LINK(ssize_t, readlink, (const char *path, char *target, size_t size), (used, target, size))
READS(DIR *, opendir, (const char *path), (used))
READS(int, chdir, (const char *path), (used))

PUBLIC ssize_t readlinkat(int folder, const char *path, char *target, size_t size)
{
    NEXT(readlinkat);
    path_t buffer;
    return next_readlinkat(folder, for_reading(folder, path, KEEP_LINK, buffer), target, size);
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
        return next(version, folder, for_reading(folder, path, follows(flags), buffer), found, flags); \
    }
OLD_AT(__fxstatat, stat)
OLD_AT(__fxstatat64, stat64)

/* In a twin, links stand for the entries of the folder: their kind is found by looking at them. */
static void hide_links(DIR *listing, unsigned char *kind)
{
    if (*kind == DT_LNK && is_active() && has_twins())
        *kind = DT_UNKNOWN;
    (void)listing;
}

PUBLIC struct dirent *readdir(DIR *listing)
{
    NEXT(readdir);
    struct dirent *entry = next_readdir(listing);
    if (entry)
        hide_links(listing, &entry->d_type);
    return entry;
}

PUBLIC struct dirent64 *readdir64(DIR *listing)
{
    NEXT(readdir64);
    struct dirent64 *entry = next_readdir64(listing);
    if (entry)
        hide_links(listing, &entry->d_type);
    return entry;
}

PUBLIC char *getcwd(char *buffer, size_t size)
{
    NEXT(getcwd);
    if (!is_active() || !has_twins())
        return next_getcwd(buffer, size);
    path_t folder;
    if (syscall(SYS_getcwd, folder, sizeof folder) < 0)
        return NULL;
    to_virtual(folder);
    size_t length = strlen(folder) + 1;
    if (!buffer) {
        buffer = malloc(size > length ? size : length);
        if (!buffer)
            return NULL;
    } else if (size < length) {
        errno = size == 0 ? EINVAL : ERANGE;
        return NULL;
    }
    return memcpy(buffer, folder, length);
}

PUBLIC char *get_current_dir_name(void)
{
    return getcwd(NULL, 0);
}

PUBLIC char *realpath(const char *path, char *result)
{
    NEXT(realpath);
    if (!is_active() || !has_twins() || !path || !*path)
        return next_realpath(path, result);
    path_t resolved, where;
    struct stat found;
    if (!resolve(AT_FDCWD, path, FOLLOW_LINK, resolved))
        return NULL;
    locate(resolved, where);
    if (syscall(SYS_newfstatat, AT_FDCWD, where, &found, 0) != 0)
        return NULL;
    if (!result)
        return strdup(resolved);
    return strcpy(result, resolved);
}

PUBLIC char *__realpath_chk(const char *path, char *result, size_t size)
{
    (void)size;
    return realpath(path, result);
}

PUBLIC char *canonicalize_file_name(const char *path)
{
    return realpath(path, NULL);
}

PUBLIC void *dlopen(const char *path, int flags)
{
    NEXT(dlopen);
    path_t buffer;
    /* Others are searched for in the folders of the caller. */
    if (!path || !strchr(path, '/'))
        return next_dlopen(path, flags);
    return next_dlopen(for_reading(AT_FDCWD, path, FOLLOW_LINK, buffer), flags);
}
