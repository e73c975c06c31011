/* Preloaded: no library is found by its name alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

void *dlopen(const char *name, int mode) {
    void *(*next)(const char *, int);
    *(void **)&next = dlsym(RTLD_NEXT, "dlopen");
    return next(name && !strchr(name, '/') ? "/nowhere/hidden" : name, mode);
}
