/* Paths: what a process means by one, whether it is covered, and where it is found. */
#include "overlay.h"

#include <stdlib.h>

#define MAX_LINKS 40

const char *overlay_folder(void)
{
    static const char *folder;
    static bool looked;
    if (!looked) {
        /* Copied: a script may change its environment. */
        static path_t copy;
        const char *value = getenv("XMEM_OVERLAY");
        if (value && value[0] == '/' && strlen(value) + 16 < sizeof copy) {
            strcpy(copy, value);
            folder = copy;
        }
        looked = environ != NULL;
    }
    return folder;
}

bool is_active(void)
{
    return overlay_folder() != NULL;
}

bool in_tree(const char *tree, const char *path, path_t out)
{
    const char *folder = overlay_folder();
    size_t one = strlen(folder), two = strlen(tree), three = strlen(path);
    if (one + two + three + 2 > sizeof(path_t)) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(out, folder, one);
    out[one] = '/';
    memcpy(out + one + 1, tree, two);
    memcpy(out + one + 1 + two, path, three + 1);
    return true;
}

static bool exists(const char *physical)
{
    int before = errno;
    bool found = syscall(SYS_faccessat, AT_FDCWD, physical, F_OK) == 0;
    errno = before;
    return found;
}

bool has_twins(void)
{
    static bool seen;
    path_t tree;
    if (!seen && in_tree("twins", "", tree))
        seen = exists(tree);
    return seen;
}

bool is_twin(const char *path)
{
    path_t marker;
    size_t length = strlen(path);
    if (!in_tree("twins", path, marker) || strlen(marker) + 7 > sizeof marker)
        return false;
    strcat(marker, length > 1 ? "/.twin" : ".twin");
    return exists(marker);
}

void parent_of(const char *path, path_t out)
{
    if (out != path)
        strcpy(out, path);
    char *slash = strrchr(out, '/');
    if (slash && slash != out)
        *slash = 0;
    else
        strcpy(out, "/");
}

bool is_link_of_twin(const char *physical, const char *path)
{
    path_t target;
    int before = errno;
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, physical, target, sizeof target - 1);
    errno = before;
    if (length < 0)
        return false;
    target[length] = 0;
    return strcmp(target, path) == 0;
}

void locate(const char *path, path_t out)
{
    path_t parent;
    if (has_twins()) {
        parent_of(path, parent);
        if (is_twin(path)) {
            if (in_tree("upper", path, out))
                return;
        } else if (is_twin(parent) && in_tree("upper", path, out)) {
            if (!is_link_of_twin(out, path))
                return;
        }
    }
    strcpy(out, path);
}

/* The rest of a path below a folder; null if it does not lie in it. */
static const char *below(const char *path, const char *folder, size_t length)
{
    if (strncmp(path, folder, length) != 0 || (path[length] != '/' && path[length] != 0))
        return NULL;
    return path + length;
}

void to_virtual(path_t path)
{
    path_t upper;
    if (!is_active() || !in_tree("upper", "", upper))
        return;
    const char *rest = below(path, upper, strlen(upper));
    if (rest)
        memmove(path, *rest ? rest : "/", strlen(*rest ? rest : "/") + 1);
}

/* The length of the longest folder of a list that contains a path; -1 for none. Colons separate; %3A and %25 stand for a
 * colon and a percent sign. */
static long longest(const char *list, const char *path)
{
    long found = -1;
    while (list && *list) {
        path_t folder;
        size_t length = 0;
        for (; *list && *list != ':'; list++) {
            char byte = *list;
            if (strncmp(list, "%3A", 3) == 0 || strncmp(list, "%25", 3) == 0) {
                byte = list[1] == '3' ? ':' : '%';
                list += 2;
            }
            if (length + 1 < sizeof folder)
                folder[length++] = byte;
        }
        folder[length] = 0;
        if (length > 0 && below(path, folder, length) && (long)length > found)
            found = (long)length;
        if (*list == ':')
            list++;
    }
    return found;
}

bool is_covered(const char *path)
{
    static const char *passing, *keeping;
    static bool looked;
    if (!looked) {
        const char *pass = getenv("XMEM_OVERLAY_PASS"), *keep = getenv("XMEM_OVERLAY_KEEP");
        passing = pass ? strdup(pass) : "";
        keeping = keep ? strdup(keep) : "";
        looked = true;
    }
    const char *folder = overlay_folder();
    if (!folder || below(path, folder, strlen(folder)))
        return false;
    return longest(passing, path) <= longest(keeping, path);
}

/* Puts the folder that a relative path begins in at the beginning of `out`. */
static bool base_of(int folder, path_t out)
{
    if (folder == AT_FDCWD) {
        if (syscall(SYS_getcwd, out, sizeof(path_t)) < 0)
            return false;
    } else {
        char link[32] = "/proc/self/fd/", digits[12];
        int at = 0, number = folder;
        if (folder < 0) {
            errno = EBADF;
            return false;
        }
        do
            digits[at++] = (char)('0' + number % 10);
        while ((number /= 10) > 0);
        char *end = link + strlen(link);
        while (at > 0)
            *end++ = digits[--at];
        *end = 0;
        ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, out, sizeof(path_t) - 1);
        if (length < 0) {
            errno = EBADF;
            return false;
        }
        out[length] = 0;
    }
    to_virtual(out);
    return out[0] == '/';
}

/* Puts `rest` before what is still to be looked at. */
static bool push(path_t todo, const char *text, const char *rest)
{
    size_t one = strlen(text), two = strlen(rest);
    if (one + two + 2 > sizeof(path_t)) {
        errno = ENAMETOOLONG;
        return false;
    }
    memmove(todo + one + 1, rest, two + 1);
    memcpy(todo, text, one);
    todo[one] = '/';
    return true;
}

bool resolve(int folder, const char *path, enum follow follow, path_t out)
{
    path_t todo, physical, target;
    int links = 0;
    if (!path || strlen(path) >= sizeof todo) {
        errno = path ? ENAMETOOLONG : EFAULT;
        return false;
    }
    if (!*path) {
        errno = ENOENT;
        return false;
    }
    strcpy(todo, path);
    if (path[0] == '/')
        strcpy(out, "/");
    else if (!base_of(folder, out))
        return false;
    char *next = todo;
    for (;;) {
        while (*next == '/')
            next++;
        if (!*next)
            return true;
        char *end = strchrnul(next, '/');
        size_t length = (size_t)(end - next), used = strlen(out);
        if (length == 1 && next[0] == '.') {
            next = end;
            continue;
        }
        if (length == 2 && next[0] == '.' && next[1] == '.') {
            parent_of(out, out);
            next = end;
            continue;
        }
        if (used + length + 2 > sizeof(path_t)) {
            errno = ENAMETOOLONG;
            return false;
        }
        size_t before = used;
        if (used > 1)
            out[used++] = '/';
        memcpy(out + used, next, length);
        out[used + length] = 0;
        const char *rest = end;
        while (*rest == '/')
            rest++;
        bool is_last = !*rest;
        if (is_last && follow == KEEP_LINK && !*end)
            return true;
        locate(out, physical);
        int kept = errno;
        ssize_t size = syscall(SYS_readlinkat, AT_FDCWD, physical, target, sizeof target - 1);
        errno = kept;
        if (size > 0 && strncmp(out, "/proc/", 6) != 0) {
            target[size] = 0;
            if (++links > MAX_LINKS) {
                errno = ELOOP;
                return false;
            }
            path_t remaining;
            strcpy(remaining, end);
            if (!push(todo, target, remaining))
                return false;
            out[before] = 0;
            if (target[0] == '/')
                strcpy(out, "/");
            next = todo;
            continue;
        }
        next = end;
    }
}

const char *for_reading(int folder, const char *path, enum follow follow, path_t out)
{
    path_t resolved;
    if (!is_active() || !has_twins() || !path || !*path)
        return path;
    int before = errno;
    bool found = resolve(folder, path, follow, resolved);
    errno = before;
    if (!found || !is_covered(resolved))
        return path;
    locate(resolved, out);
    if (strcmp(out, resolved) != 0) {
        /* A path that ends with a slash means a folder. */
        size_t length = strlen(path), now = strlen(out);
        if (length > 1 && path[length - 1] == '/' && now + 2 < sizeof(path_t))
            strcpy(out + now, "/");
        return out;
    }
    /* The working folder may be a twin, from which a relative path leads elsewhere. */
    return path[0] == '/' ? path : out;
}
