/* Functions of the C library that start programs: what was written can be run, and the library stays loaded where a
 * script passes an environment of its own. */
#include "overlay.h"

#include <spawn.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_VARIABLES 4096

static const char *const NAMES[] = {"LD_PRELOAD=", "XMEM_OVERLAY=", "XMEM_OVERLAY_PASS=", "XMEM_OVERLAY_KEEP="};
#define OWN (sizeof NAMES / sizeof NAMES[0])

/* The variables as they were when the library was loaded: a script may change its own. */
static char *own[OWN];

__attribute__((constructor)) static void remember(void)
{
    for (size_t name = 0; name < OWN; name++)
        for (char **variable = environ; variable && *variable; variable++)
            if (strncmp(*variable, NAMES[name], strlen(NAMES[name])) == 0)
                own[name] = strdup(*variable);
}

/* The environment with what is missing. Between vfork and exec, no memory may be taken but that of the stack. */
static char *const *complete(char *const given[], char *buffer[MAX_VARIABLES])
{
    size_t count = 0;
    bool has[OWN] = {false};
    if (!is_active() || !given)
        return given;
    for (; given[count]; count++) {
        if (count + OWN + 1 >= MAX_VARIABLES)
            return given;
        buffer[count] = given[count];
        for (size_t name = 0; name < OWN; name++) {
            if (strncmp(given[count], NAMES[name], strlen(NAMES[name])) != 0)
                continue;
            has[name] = true;
            /* Another list of libraries gives way to ours. */
            if (name == 0 && !strstr(given[count], "libxmem-overlay.so") && own[0])
                buffer[count] = own[0];
        }
    }
    for (size_t name = 0; name < OWN; name++)
        if (!has[name] && own[name])
            buffer[count++] = own[name];
    buffer[count] = NULL;
    return buffer;
}

PUBLIC int execve(const char *path, char *const arguments[], char *const variables[])
{
    path_t where;
    char *buffer[MAX_VARIABLES];
    return (int)syscall(SYS_execve, for_reading(AT_FDCWD, path, FOLLOW_LINK, where), arguments,
                        complete(variables, buffer));
}

PUBLIC int execv(const char *path, char *const arguments[])
{
    return execve(path, arguments, environ);
}

PUBLIC int execvpe(const char *file, char *const arguments[], char *const variables[])
{
    NEXT(execvpe);
    path_t where;
    char *buffer[MAX_VARIABLES];
    const char *used = strchr(file, '/') ? for_reading(AT_FDCWD, file, FOLLOW_LINK, where) : file;
    return next_execvpe(used, arguments, complete(variables, buffer));
}

PUBLIC int execvp(const char *file, char *const arguments[])
{
    return execvpe(file, arguments, environ);
}

#define SPAWNS(name)                                                                                     \
    PUBLIC int name(pid_t *process, const char *file, const posix_spawn_file_actions_t *actions,         \
                    const posix_spawnattr_t *attributes, char *const arguments[], char *const variables[]) \
    {                                                                                                    \
        NEXT(name);                                                                                      \
        path_t where;                                                                                    \
        char *buffer[MAX_VARIABLES];                                                                     \
        const char *used = strchr(file, '/') ? for_reading(AT_FDCWD, file, FOLLOW_LINK, where) : file; \
        return next_##name(process, used, actions, attributes, arguments, complete(variables, buffer));  \
    }
SPAWNS(posix_spawn)
SPAWNS(posix_spawnp)
