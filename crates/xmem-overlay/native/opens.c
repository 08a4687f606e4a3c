/* Functions of the C library that open files. */
#include "overlay.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define WRITING (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND)

const char *path_to_open(int folder, const char *path, int flags, path_t buffer)
{
    if (!is_active() || !path || (flags & O_PATH))
        return for_reading(folder, path, flags & O_NOFOLLOW ? KEEP_LINK : FOLLOW_LINK, buffer);
    if (!(flags & WRITING) && (flags & O_TMPFILE) != O_TMPFILE)
        return for_reading(folder, path, flags & O_NOFOLLOW ? KEEP_LINK : FOLLOW_LINK, buffer);
    return for_writing(folder, path, flags, buffer) ? buffer : NULL;
}

static int open_at(int folder, const char *path, int flags, mode_t mode)
{
    path_t buffer;
    const char *used = path_to_open(folder, path, flags, buffer);
    if (path && !used)
        return -1;
    return (int)syscall(SYS_openat, folder, used, flags | O_LARGEFILE, mode);
}

#define MODE()                                                  \
    mode_t mode = 0;                                            \
    if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) { \
        va_list more;                                           \
        va_start(more, flags);                                  \
        mode = va_arg(more, mode_t);                            \
        va_end(more);                                           \
    }

PUBLIC int open(const char *path, int flags, ...)
{
    MODE();
    return open_at(AT_FDCWD, path, flags, mode);
}

PUBLIC int open64(const char *path, int flags, ...)
{
    MODE();
    return open_at(AT_FDCWD, path, flags, mode);
}

PUBLIC int openat(int folder, const char *path, int flags, ...)
{
    MODE();
    return open_at(folder, path, flags, mode);
}

PUBLIC int openat64(int folder, const char *path, int flags, ...)
{
    MODE();
    return open_at(folder, path, flags, mode);
}

PUBLIC int creat(const char *path, mode_t mode)
{
    return open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}

PUBLIC int creat64(const char *path, mode_t mode)
{
    return creat(path, mode);
}

/* Other names of the same. */
PUBLIC int __open(const char *path, int flags, ...)
{
    MODE();
    return open_at(AT_FDCWD, path, flags, mode);
}

PUBLIC int __open64(const char *path, int flags, ...)
{
    MODE();
    return open_at(AT_FDCWD, path, flags, mode);
}

/* With _FORTIFY_SOURCE. */
PUBLIC int __open_2(const char *path, int flags)
{
    return open_at(AT_FDCWD, path, flags, 0);
}

PUBLIC int __open64_2(const char *path, int flags)
{
    return open_at(AT_FDCWD, path, flags, 0);
}

PUBLIC int __openat_2(int folder, const char *path, int flags)
{
    return open_at(folder, path, flags, 0);
}

PUBLIC int __openat64_2(int folder, const char *path, int flags)
{
    return open_at(folder, path, flags, 0);
}

/* The flags of open(2) for a mode of fopen(3). */
static int flags_of(const char *mode)
{
    int flags = strchr(mode, '+') ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
    if (mode[0] == 'w')
        flags |= O_CREAT | O_TRUNC;
    if (mode[0] == 'a')
        flags |= O_CREAT | O_APPEND;
    if (strchr(mode, 'x'))
        flags |= O_EXCL;
    return flags;
}

#define OPENS_STREAM(name, parameters, arguments)                               \
    PUBLIC FILE *name parameters                                                \
    {                                                                           \
        NEXT(name);                                                             \
        path_t buffer;                                                          \
        const char *used = path_to_open(AT_FDCWD, path, flags_of(mode), buffer);      \
        if (path && !used)                                                      \
            return NULL;                                                        \
        return next_##name arguments;                                           \
    }
OPENS_STREAM(fopen, (const char *path, const char *mode), (used, mode))
OPENS_STREAM(fopen64, (const char *path, const char *mode), (used, mode))
OPENS_STREAM(freopen, (const char *path, const char *mode, FILE *stream), (used, mode, stream))
OPENS_STREAM(freopen64, (const char *path, const char *mode, FILE *stream), (used, mode, stream))

/* Makes something with a random name in place of the X before a suffix. */
static bool make_random(char *name, int suffix, int flags, bool is_folder, int *made)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    size_t length = strlen(name);
    if (suffix < 0 || length < 6 + (size_t)suffix || strncmp(name + length - 6 - suffix, "XXXXXX", 6) != 0) {
        errno = EINVAL;
        return false;
    }
    char *x = name + length - 6 - suffix;
    for (int attempt = 0; attempt < 1000; attempt++) {
        unsigned char random[6];
        if (syscall(SYS_getrandom, random, sizeof random, 0) != sizeof random)
            return false;
        for (int at = 0; at < 6; at++)
            x[at] = letters[random[at] % (sizeof letters - 1)];
        int result = is_folder ? mkdir(name, 0700) : open_at(AT_FDCWD, name, flags | O_RDWR | O_CREAT | O_EXCL, 0600);
        if (result >= 0) {
            *made = result;
            return true;
        }
        if (errno != EEXIST)
            break;
    }
    int failed = errno;
    memcpy(x, "XXXXXX", 6);
    errno = failed;
    return false;
}

#define MAKES_FILE(name, parameters, suffix, flags)                             \
    PUBLIC int name parameters                                                  \
    {                                                                           \
        int made;                                                               \
        return make_random(template, suffix, flags, false, &made) ? made : -1;  \
    }
MAKES_FILE(mkstemp, (char *template), 0, 0)
MAKES_FILE(mkstemp64, (char *template), 0, 0)
MAKES_FILE(mkostemp, (char *template, int flags), 0, flags)
MAKES_FILE(mkostemp64, (char *template, int flags), 0, flags)
MAKES_FILE(mkstemps, (char *template, int suffix), suffix, 0)
MAKES_FILE(mkstemps64, (char *template, int suffix), suffix, 0)
MAKES_FILE(mkostemps, (char *template, int suffix, int flags), suffix, flags)
MAKES_FILE(mkostemps64, (char *template, int suffix, int flags), suffix, flags)

PUBLIC char *mkdtemp(char *template)
{
    int made;
    return make_random(template, 0, 0, true, &made) ? template : NULL;
}
