/* Functions of the C library that start programs: what was written can be run, and the library stays loaded where a
 * script passes an environment of its own. */
#include "overlay.h"

#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_VARIABLES 4096
/* Of a list of libraries, with ours. */
#define MAX_LIST (2 * PATH_MAX)

/* The variables of the library. */
static const char *const NAMES[] = {"LD_PRELOAD=", "XMEM_OVERLAY=", "XMEM_OVERLAY_PASS=", "XMEM_OVERLAY_KEEP="};
#define OWN (sizeof NAMES / sizeof NAMES[0])

/* The variables as they were when they were first looked at, with their names. */
static char *const *at_start(void)
{
    static char *own[OWN];
    static bool looked;
    for (size_t name = 0; !looked && name < OWN; name++)
        for (char **variable = environ; variable && *variable; variable++)
            if (!own[name] && strncmp(*variable, NAMES[name], strlen(NAMES[name])) == 0)
                own[name] = strdup(*variable);
    looked = looked || environ;
    return own;
}

__attribute__((constructor)) static void remember(void)
{
    at_start();
}

const char *variable_at_start(const char *name)
{
    size_t length = strlen(name);
    for (size_t at = 0; at < OWN; at++)
        if (strncmp(NAMES[at], name, length) == 0 && NAMES[at][length] == '=')
            return at_start()[at] ? at_start()[at] + length + 1 : "";
    return "";
}

struct environment {
    char *variables[MAX_VARIABLES];
    char list[MAX_LIST];
};

/* The environment with what is missing. Between vfork and exec, no memory may be taken but that of the stack. */
static char *const *complete(char *const given[], struct environment *out)
{
    static char *const none[] = {NULL};
    char *const *own = at_start();
    size_t count = 0;
    bool has[OWN] = {false};
    if (!is_active())
        return given;
    if (!given)
        given = none;
    for (; given[count]; count++) {
        if (count + OWN + 1 >= MAX_VARIABLES)
            return given;
        out->variables[count] = given[count];
        for (size_t name = 0; name < OWN; name++) {
            if (strncmp(given[count], NAMES[name], strlen(NAMES[name])) != 0)
                continue;
            has[name] = true;
            if (!own[name])
                continue;
            const char *value = given[count] + strlen(NAMES[name]);
            if (name > 0 || !*value) {
                out->variables[count] = own[name];
            } else if (!strstr(value, "libxmem-overlay.so")) {
                /* Another list of libraries goes before ours. */
                if (strlen(own[0]) + strlen(value) + 2 < sizeof out->list) {
                    stpcpy(stpcpy(stpcpy(stpcpy(out->list, NAMES[0]), value), ":"), own[0] + strlen(NAMES[0]));
                    out->variables[count] = out->list;
                } else {
                    out->variables[count] = own[0];
                }
            }
        }
    }
    for (size_t name = 0; name < OWN; name++)
        if (!has[name] && own[name])
            out->variables[count++] = own[name];
    out->variables[count] = NULL;
    return out->variables;
}

PUBLIC int execve(const char *path, char *const arguments[], char *const variables[])
{
    path_t where;
    struct environment buffer;
    return (int)syscall(SYS_execve, for_reading(AT_FDCWD, path, FOLLOW_LINK, where), arguments,
                        complete(variables, &buffer));
}

PUBLIC int execv(const char *path, char *const arguments[])
{
    return execve(path, arguments, environ);
}

/* Finds a program as the C library does, but where it was written, too; the name given if there is none. */
static const char *search(const char *file, path_t out)
{
    const char *folders = getenv("PATH");
    path_t candidate;
    if (strchr(file, '/') || !has_twins() || !folders)
        return strchr(file, '/') ? for_reading(AT_FDCWD, file, FOLLOW_LINK, out) : file;
    for (const char *next = folders; *next; next += *next == ':') {
        size_t length = (size_t)(strchrnul(next, ':') - next);
        if (length + strlen(file) + 2 < sizeof candidate) {
            memcpy(candidate, next, length);
            candidate[length] = '/';
            strcpy(candidate + (length ? length + 1 : 0), file);
            const char *used = for_reading(AT_FDCWD, candidate, FOLLOW_LINK, out);
            if (syscall(SYS_faccessat, AT_FDCWD, used, X_OK) == 0) {
                struct stat found;
                if (raw_stat(used, 0, &found) == 0 && S_ISREG(found.st_mode))
                    return used == out ? out : strcpy(out, used);
            }
        }
        next += length;
    }
    return file;
}

PUBLIC int execvpe(const char *file, char *const arguments[], char *const variables[])
{
    NEXT(execvpe);
    path_t where;
    struct environment buffer;
    return next_execvpe(search(file, where), arguments, complete(variables, &buffer));
}

PUBLIC int execvp(const char *file, char *const arguments[])
{
    return execvpe(file, arguments, environ);
}

PUBLIC int execveat(int folder, const char *path, char *const arguments[], char *const variables[], int flags)
{
    path_t where;
    struct environment buffer;
    return (int)syscall(SYS_execveat, folder, for_reading(folder, path, LINK_OF(flags), where), arguments,
                        complete(variables, &buffer), flags);
}

PUBLIC int fexecve(int descriptor, char *const arguments[], char *const variables[])
{
    NEXT(fexecve);
    struct environment buffer;
    return next_fexecve(descriptor, arguments, complete(variables, &buffer));
}

#define MAX_ARGUMENTS 1024

/* Functions with the arguments of a program one by one. */
#define LISTS(name, call, takes_variables)                                          PUBLIC int name(const char *path, const char *first, ...)                       {                                                                                   char *arguments[MAX_ARGUMENTS];                                                 size_t count = 0;                                                               va_list more;                                                                   va_start(more, first);                                                          for (const char *next = first; next && count + 1 < MAX_ARGUMENTS; next = va_arg(more, const char *))             arguments[count++] = (char *)next;                                          arguments[count] = NULL;                                                        char *const *variables = takes_variables ? va_arg(more, char *const *) : environ;         va_end(more);                                                                   return call(path, arguments, variables);                                    }
LISTS(execl, execve, false)
LISTS(execle, execve, true)
LISTS(execlp, execvpe, false)

/* The path that the new process is to open. */
PUBLIC int posix_spawn_file_actions_addopen(posix_spawn_file_actions_t *actions, int descriptor, const char *path,
                                            int flags, mode_t mode)
{
    NEXT(posix_spawn_file_actions_addopen);
    path_t buffer;
    const char *used = path_to_open(AT_FDCWD, path, flags, buffer);
    return used ? next_posix_spawn_file_actions_addopen(actions, descriptor, used, flags, mode) : errno;
}

#define SPAWNS(name, found)                                                     \
    PUBLIC int name(pid_t *process, const char *file, const posix_spawn_file_actions_t *actions, \
                    const posix_spawnattr_t *attributes, char *const arguments[], char *const variables[]) \
    {                                                                           \
        NEXT(name);                                                             \
        path_t where;                                                           \
        struct environment buffer;                                              \
        return next_##name(process, found, actions, attributes, arguments, complete(variables, &buffer)); \
    }
SPAWNS(posix_spawn, for_reading(AT_FDCWD, file, FOLLOW_LINK, where))
SPAWNS(posix_spawnp, search(file, where))
