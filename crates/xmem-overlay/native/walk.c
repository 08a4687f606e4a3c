/* Walks along paths, through the links of the user's folders and of twins: what a path means, and where that is found. */
#include "overlay.h"

#define MAX_LINKS 40

/* Whether there are twins at a path or below, by what is at the path below `twins`. */
static enum state state_at(const char *path)
{
    path_t marker;
    struct stat found;
    int before = errno;
    bool is_there = in_tree("twins", path, marker) && raw_stat(marker, 0, &found) == 0;
    errno = before;
    return !is_there ? REAL : found.st_mode & S_ISVTX ? TWIN : ABOVE_TWINS;
}

bool is_root(const char *path)
{
    return state_at(path) == TWIN;
}

enum state state_of_top(void)
{
    return has_twins() ? state_at("/") : REAL;
}

/* Roots that were met, so that a walk can begin there. */
#define MAX_ROOTS 8
static path_t roots[MAX_ROOTS];
static int roots_count;

static void remember_root(const char *path)
{
    static int is_busy;
    if (__atomic_exchange_n(&is_busy, 1, __ATOMIC_ACQUIRE))
        return;
    int count = roots_count;
    for (int at = 0; at < count; at++)
        if (strcmp(roots[at], path) == 0)
            count = MAX_ROOTS;
    if (count < MAX_ROOTS) {
        strcpy(roots[count], path);
        __atomic_store_n(&roots_count, count + 1, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&is_busy, 0, __ATOMIC_RELEASE);
}

/* The length of the root with which a path begins; 0 if none is known. */
static size_t known_root(const char *path)
{
    for (int at = __atomic_load_n(&roots_count, __ATOMIC_ACQUIRE) - 1; at >= 0; at--) {
        size_t length = strlen(roots[at]);
        /* It may have come into a greater twin. */
        if (strncmp(path, roots[at], length) == 0 && (path[length] == '/' || !path[length]) && is_root(roots[at]))
            return length;
    }
    return 0;
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
        *state = state_at(path);
        if (*state == TWIN)
            remember_root(path);
        /* No links lead to a twin: it was resolved when it was made. */
        if (*state != REAL)
            return 0;
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
    size_t root = known_root(path);
    enum state state = root ? TWIN : state_of_top();
    for (size_t end = root + 1; state != REAL && path[end - 1]; end++) {
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
    size_t used = known_root(todo);
    enum state state = used ? TWIN : state_of_top();
    memcpy(out, todo, used);
    out[used] = 0;
    for (const char *next = todo + used;;) {
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
