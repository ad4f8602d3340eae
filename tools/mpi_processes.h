/* mpi_processes.h: gpuidx-mpi: a build or a replay by several processes, which mpirun starts on one machine or
 * on many that share a file system.
 *
 *   mpirun -n 4 gpuidx-mpi build CORPUS... -o COLLECTION    each process builds some of the parts
 *   mpirun -n 4 gpuidx-mpi replay COLLECTION LOG            each process searches some of the parts
 *
 * Flags are those of `gpuidx build` and `gpuidx replay`, whose code runs in every process.
 */
#ifndef GX_TOOLS_MPI_PROCESSES_H
#define GX_TOOLS_MPI_PROCESSES_H

#include "tools/cli/cli.h"

typedef struct mpi_processes {
    int number, n; /* this one, of how many */
    bool told;     /* another process has left a replay, and this one has heard of it */
    bool others;   /* another process has failed first */
} mpi_processes;

extern mpi_processes mpi;

/* All processes call it with their exit codes: the greatest. After a process has been told, it
 * does nothing. */
int mpi_agree(int code);

/* argv[0] is "build". Returns this process's exit code. */
int mpi_build(int argc, char **argv);

#endif
