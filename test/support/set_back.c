/* Lets a test set the wall clock of one process: LD_PRELOAD puts it in front of the C library.

   The file SET_BACK holds how many seconds the clock is behind; without it, it is right. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *out)
{
    long done = syscall(SYS_clock_gettime, clock, out);
    const char *name = getenv("SET_BACK");
    FILE *file = clock == CLOCK_REALTIME && name ? fopen(name, "r") : NULL;
    if (file) {
        long seconds = 0;
        if (fscanf(file, "%ld", &seconds) == 1)
            out->tv_sec -= seconds;
        fclose(file);
    }
    return (int)done;
}
