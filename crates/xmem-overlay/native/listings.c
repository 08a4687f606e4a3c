/* Functions of the C library that list folders, or tell where they are. */
#include "overlay.h"

#include <dirent.h>
#include <ftw.h>
#include <glob.h>
#include <stdlib.h>

PUBLIC DIR *opendir(const char *path)
{
    NEXT(opendir);
    path_t buffer;
    return next_opendir(for_reading(AT_FDCWD, path, FOLLOW_LINK, buffer));
}

/* A folder that was opened before it had a twin: the descriptor becomes one of the twin. */
static void follow_twin(int descriptor)
{
    path_t path, physical;
    int before = errno;
    if (is_active() && has_twins() && path_of_real(descriptor, path)) {
        locate(path, physical);
        int twin = -1;
        if (strcmp(path, physical) != 0)
            twin = (int)syscall(SYS_openat, AT_FDCWD, physical, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
        if (twin >= 0) {
            int flags = (int)syscall(SYS_fcntl, descriptor, F_GETFD);
            syscall(SYS_dup3, twin, descriptor, flags & FD_CLOEXEC ? O_CLOEXEC : 0);
            syscall(SYS_close, twin);
        }
    }
    errno = before;
}

PUBLIC DIR *fdopendir(int descriptor)
{
    NEXT(fdopendir);
    follow_twin(descriptor);
    return next_fdopendir(descriptor);
}

PUBLIC void rewinddir(DIR *listing)
{
    NEXT(rewinddir);
    follow_twin(dirfd(listing));
    next_rewinddir(listing);
}

/* In a twin, links stand for the entries of the folder: their kind is found by looking at them. */
static void hide_links(unsigned char *kind)
{
    if (*kind == DT_LNK && is_active() && has_twins())
        *kind = DT_UNKNOWN;
}

PUBLIC struct dirent *readdir(DIR *listing)
{
    NEXT(readdir);
    struct dirent *entry = next_readdir(listing);
    if (entry)
        hide_links(&entry->d_type);
    return entry;
}

PUBLIC struct dirent64 *readdir64(DIR *listing)
{
    NEXT(readdir64);
    struct dirent64 *entry = next_readdir64(listing);
    if (entry)
        hide_links(&entry->d_type);
    return entry;
}

/* The list is made by the C library, which calls its own functions. */
#define SCANS(name, type)                                                       \
    PUBLIC int name(const char *path, struct type ***list, int (*is_wanted)(const struct type *), \
                    int (*compare)(const struct type **, const struct type **)) \
    {                                                                           \
        NEXT(name);                                                             \
        path_t buffer;                                                          \
        int count = next_##name(for_reading(AT_FDCWD, path, FOLLOW_LINK, buffer), list, is_wanted, compare); \
        for (int at = 0; at < count; at++)                                      \
            hide_links(&(*list)[at]->d_type);                                   \
        return count;                                                           \
    }                                                                           \
    PUBLIC int name##at(int folder, const char *path, struct type ***list, int (*is_wanted)(const struct type *), \
                        int (*compare)(const struct type **, const struct type **)) \
    {                                                                           \
        NEXT(name##at);                                                         \
        path_t buffer;                                                          \
        const char *used = for_reading(folder, path, FOLLOW_LINK, buffer);      \
        int count = next_##name##at(folder, used, list, is_wanted, compare);    \
        for (int at = 0; at < count; at++)                                      \
            hide_links(&(*list)[at]->d_type);                                   \
        return count;                                                           \
    }
SCANS(scandir, dirent)
#define scandir64at scandirat64
SCANS(scandir64, dirent64)

static void *glob_open(const char *path)
{
    return opendir(path);
}

static void glob_close(void *listing)
{
    closedir(listing);
}

static struct dirent *glob_read(void *listing)
{
    return readdir(listing);
}

static struct dirent64 *glob_read64(void *listing)
{
    return readdir64(listing);
}

/* The C library's, with our functions in place of its own. */
#define GLOBS(name, type, read, status)                                         \
    PUBLIC int name(const char *pattern, int flags, int (*failed)(const char *, int), type *out) \
    {                                                                           \
        NEXT(name);                                                             \
        if (!is_active() || !has_twins() || (flags & GLOB_ALTDIRFUNC))          \
            return next_##name(pattern, flags, failed, out);                    \
        type own = *out;                                                        \
        own.gl_opendir = glob_open;                                             \
        own.gl_closedir = glob_close;                                           \
        own.gl_readdir = read;                                                  \
        own.gl_lstat = l##status;                                               \
        own.gl_stat = status;                                                   \
        int result = next_##name(pattern, flags | GLOB_ALTDIRFUNC, failed, &own); \
        out->gl_pathc = own.gl_pathc;                                           \
        out->gl_pathv = own.gl_pathv;                                           \
        out->gl_offs = own.gl_offs;                                             \
        out->gl_flags = own.gl_flags & ~GLOB_ALTDIRFUNC;                        \
        return result;                                                          \
    }
GLOBS(glob, glob_t, glob_read, stat)
GLOBS(glob64, glob64_t, glob_read64, stat64)

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
        if (size && size < length) {
            errno = ERANGE;
            return NULL;
        }
        buffer = malloc(size > length ? size : length);
        if (!buffer)
            return NULL;
    } else if (size < length) {
        errno = size == 0 ? EINVAL : ERANGE;
        return NULL;
    }
    return memcpy(buffer, folder, length);
}

PUBLIC char *__getcwd_chk(char *buffer, size_t size, size_t room)
{
    return getcwd(buffer, size < room ? size : room);
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
    if (!resolve(AT_FDCWD, path, FOLLOW_LINK, resolved, where))
        return NULL;
    /* Links of the kernel's, which are not walked through. */
    if (strncmp(resolved, "/proc/", 6) == 0) {
        char *real = next_realpath(path, result);
        if (real && strlen(real) < sizeof resolved) {
            strcpy(resolved, real);
            to_virtual(resolved);
            strcpy(real, resolved);
        }
        return real;
    }
    if (raw_stat(where, 0, &found) != 0)
        return NULL;
    if (ends_as_folder(path) && !S_ISDIR(found.st_mode)) {
        errno = ENOTDIR;
        return NULL;
    }
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

/* dlopen looks at the address to which it returns: it is jumped to, as if the caller had called it, and finds libraries
 * where the caller's are. Gives the path in place of one that was written. */
__attribute__((noinline)) static const char *library(const char *path)
{
    static __thread path_t buffer __attribute__((tls_model("initial-exec")));
    if (!path || !strchr(path, '/') || path[0] == '$')
        return path;
    return for_reading(AT_FDCWD, path, FOLLOW_LINK, buffer);
}

PUBLIC void *dlopen(const char *path, int flags)
{
    NEXT(dlopen);
    return next_dlopen(library(path), flags);
}

PUBLIC void *dlmopen(Lmid_t space, const char *path, int flags)
{
    NEXT(dlmopen);
    return next_dlmopen(space, library(path), flags);
}
