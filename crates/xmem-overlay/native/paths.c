/* Paths: the private folder, whether a path is covered, and what stands for what. */
#include "overlay.h"

#include <stdlib.h>

const char *overlay_folder(void)
{
    static const char *folder;
    static bool looked;
    if (!looked) {
        /* Copied: a script may change its environment. */
        static path_t copy;
        const char *value = environ ? getenv("XMEM_OVERLAY") : NULL;
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

bool exists(const char *physical)
{
    int before = errno;
    bool found = syscall(SYS_faccessat, AT_FDCWD, physical, F_OK) == 0;
    errno = before;
    return found;
}

int raw_stat(const char *physical, int flags, struct stat *found)
{
    return (int)syscall(SYS_newfstatat, AT_FDCWD, physical, found, flags);
}

bool has_twins(void)
{
    static bool seen;
    path_t tree;
    if (!seen && in_tree("twins", "", tree))
        seen = exists(tree);
    return seen;
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

bool ends_as_folder(const char *path)
{
    size_t length = strlen(path);
    return length > 1 && path[length - 1] == '/';
}

/* The rest of a path below a folder; null if it does not lie in it. */
static const char *below(const char *path, const char *folder, size_t length)
{
    if (strncmp(path, folder, length) != 0 || (path[length] != '/' && path[length] != 0))
        return NULL;
    return path + length;
}

bool to_virtual(path_t path)
{
    path_t upper;
    if (!is_active() || !in_tree("upper", "", upper))
        return false;
    const char *rest = below(path, upper, strlen(upper));
    if (rest)
        memmove(path, *rest ? rest : "/", strlen(*rest ? rest : "/") + 1);
    return rest != NULL;
}

bool path_behind(int descriptor, path_t out)
{
    char link[32] = "/proc/self/fd/", digits[12];
    int at = 0, number = descriptor;
    if (descriptor < 0) {
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
    return true;
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
        while (length > 0 && folder[length - 1] == '/')
            folder[--length] = 0;
        if (below(path, folder, length) && (long)length > found)
            found = (long)length;
        if (*list == ':')
            list++;
    }
    return found;
}

bool is_covered(const char *path)
{
    const char *folder = overlay_folder();
    if (!folder || below(path, folder, strlen(folder)))
        return false;
    return longest(variable_at_start("XMEM_OVERLAY_PASS"), path) <= longest(variable_at_start("XMEM_OVERLAY_KEEP"), path);
}
