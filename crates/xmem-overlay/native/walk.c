/* Walks along paths, through the links of the user's folders and of twins: what a path means, and where that is found. */
#include "overlay.h"

#define MAX_LINKS 40

bool is_root(const char *path)
{
    path_t marker;
    size_t length = strlen(path);
    if (!in_tree("twins", path, marker) || strlen(marker) + 7 > sizeof marker)
        return false;
    strcat(marker, length > 1 ? "/.twin" : ".twin");
    return exists(marker);
}

/* The target of a link; 0 if there is none, or it is no link. */
static size_t target_of(const char *physical, path_t target)
{
    int before = errno;
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, physical, target, sizeof(path_t) - 1);
    errno = before;
    if (length <= 0)
        return 0;
    target[length] = 0;
    return (size_t)length;
}

bool is_link_of_twin(const char *physical, const char *path)
{
    path_t target;
    return target_of(physical, target) && strcmp(target, path) == 0;
}

enum state state_of_top(void)
{
    return !has_twins() ? REAL : is_root("/") ? TWIN : ABOVE_TWINS;
}

/* As step, and gives the target if there is a link of the user's, for which it looks in their folders if asked for. */
static size_t step_to(const char *path, enum state *state, bool is_looking, path_t target)
{
    path_t physical;
    if (*state == TWIN) {
        size_t length = in_tree("upper", path, physical) ? target_of(physical, target) : 0;
        if (!length || strcmp(target, path) != 0)
            return length;
        *state = REAL;
    } else if (*state == ABOVE_TWINS) {
        if (!in_tree("twins", path, physical) || !exists(physical)) {
            *state = REAL;
        } else if (is_root(path)) {
            *state = TWIN;
            return 0;
        }
    }
    return is_looking ? target_of(path, target) : 0;
}

void step(const char *path, enum state *state)
{
    path_t target;
    step_to(path, state, false, target);
}

void locate(const char *path, path_t physical)
{
    path_t at;
    enum state state = state_of_top();
    for (size_t end = 1; state != REAL && path[end - 1]; end++) {
        if (end > 1 && (path[end] == '/' || path[end] == 0)) {
            memcpy(at, path, end);
            at[end] = 0;
            step(at, &state);
        }
    }
    if (state != TWIN || !in_tree("upper", strcmp(path, "/") ? path : "", physical))
        strcpy(physical, path);
}

/* Joins what is to be walked along; both parts may be the beginning or end of the result. */
static bool join(path_t out, const char *first, const char *second)
{
    size_t one = strlen(first), two = strlen(second);
    if (one + two + 2 > sizeof(path_t)) {
        errno = ENAMETOOLONG;
        return false;
    }
    memmove(out + one + 1, second, two + 1);
    memmove(out, first, one);
    out[one] = '/';
    return true;
}

/* Puts the path that is to be walked along into `todo`; the beginning that has no links is as long as returned. -1 if there
 * is none. */
static long begin(int folder, const char *path, path_t todo)
{
    if (!path || !*path) {
        errno = path ? ENOENT : EFAULT;
        return -1;
    }
    if (path[0] == '/') {
        if (strlen(path) >= sizeof(path_t)) {
            errno = ENAMETOOLONG;
            return -1;
        }
        strcpy(todo, path);
        return 0;
    }
    if (folder == AT_FDCWD ? syscall(SYS_getcwd, todo, sizeof(path_t)) < 0 : !path_behind(folder, todo))
        return -1;
    to_virtual(todo);
    if (todo[0] != '/') {
        errno = folder == AT_FDCWD ? ENOENT : ENOTDIR;
        return -1;
    }
    size_t length = strlen(todo);
    return join(todo, todo, path) ? (long)length : -1;
}

/* As resolve, and tells whether a link was followed that only twins have. */
static bool resolve_by(int folder, const char *path, enum follow follow, path_t out, path_t physical, bool *by_twin)
{
    path_t todo, target;
    int links = 0, before = errno;
    long known = begin(folder, path, todo);
    *by_twin = false;
    if (known < 0)
        return false;
again:;
    enum state state = state_of_top();
    size_t used = 0;
    out[0] = 0;
    for (const char *next = todo;;) {
        while (*next == '/')
            next++;
        if (!*next)
            break;
        const char *end = strchrnul(next, '/');
        size_t length = (size_t)(end - next);
        if (length == 1 && next[0] == '.') {
            next = end;
            continue;
        }
        if (length == 2 && next[0] == '.' && next[1] == '.') {
            /* The state of the parent is not known here. */
            char *slash = strrchr(out, '/');
            if (slash)
                *slash = 0;
            known = (long)strlen(out);
            memmove(todo + known, end, strlen(end) + 1);
            memcpy(todo, out, (size_t)known);
            goto again;
        }
        if (used + length + 2 > sizeof(path_t)) {
            errno = ENAMETOOLONG;
            return false;
        }
        out[used] = '/';
        memcpy(out + used + 1, next, length);
        out[used + 1 + length] = 0;
        bool is_kept = follow == KEEP_LINK && !*end;
        /* Of the links of the kernel, only those to open files of the user's lead anywhere. */
        bool is_kernel = strncmp(out, "/proc/", 6) == 0;
        bool is_looking = end - todo > known && !is_kept && (!is_kernel || strstr(out, "/fd/"));
        size_t link = step_to(out, &state, is_looking, target);
        if (is_kernel && link && !(target[0] == '/' && is_covered(target) && exists(target)))
            link = 0;
        if (link && !is_kept) {
            *by_twin |= state == TWIN;
            if (++links > MAX_LINKS) {
                errno = ELOOP;
                return false;
            }
            out[used] = 0;
            known = target[0] == '/' ? 0 : (long)used;
            path_t rest;
            strcpy(rest, end);
            if (!join(todo, target[0] == '/' ? "" : out, target) || strlen(todo) + strlen(rest) >= sizeof todo) {
                errno = ENAMETOOLONG;
                return false;
            }
            strcat(todo, rest);
            goto again;
        }
        used += 1 + length;
        next = end;
    }
    errno = before;
    if (state == TWIN && !in_tree("upper", out, physical))
        return false;
    if (!used)
        strcpy(out, "/");
    if (state != TWIN)
        strcpy(physical, out);
    return true;
}

bool resolve(int folder, const char *path, enum follow follow, path_t out, path_t physical)
{
    bool by_twin;
    return resolve_by(folder, path, follow, out, physical, &by_twin);
}

const char *for_reading(int folder, const char *path, enum follow follow, path_t out)
{
    path_t resolved;
    if (!is_active() || !has_twins() || !path || !*path)
        return path;
    int before = errno;
    bool by_twin, found = resolve_by(folder, path, follow, resolved, out, &by_twin);
    errno = before;
    if (!found)
        return path;
    /* From a working folder that is a twin, the kernel does not know the way out. */
    if (path[0] == '/' && !by_twin && strcmp(out, resolved) == 0)
        return path;
    /* A path that ends with a slash means a folder. */
    size_t length = strlen(out);
    if (ends_as_folder(path) && length > 1 && length + 2 < sizeof(path_t))
        strcpy(out + length, "/");
    return out;
}
