/* SPDX-License-Identifier: ISC */
/*
 * The peer: StarPU orders tasks by the data they access as well, in one process. The same chain, on one
 * handle, with one worker that has a processor of its own. Prints lines as the bench's own rounds do.
 */
#include <starpu.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

#define ROUNDS 5

static uint32_t target[ROUNDS];

static void store(void *buffers[], void *arg)
{
        target[0] = 7;
}

static struct starpu_codelet codelet = {
        .cpu_funcs = {store},
        .nbuffers = 1,
        .modes = {STARPU_RW},
        .name = "store",
};

static int compare(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return (x > y) - (x < y);
}

static double chain_nsec(starpu_data_handle_t handle, size_t tasks)
{
        uint64_t begin = rig_now_nsec();
        size_t i;

        for (i = 0; i < tasks; i++) {
                struct starpu_task *task = starpu_task_create();

                task->cl = &codelet;
                task->handles[0] = handle;
                if (starpu_task_submit(task) != 0)
                        exit(1);
        }
        starpu_task_wait_for_all();
        return (double)(rig_now_nsec() - begin) / (double)tasks;
}

int main(int argc, char **argv)
{
        double scale = argc == 2 ? strtod(argv[1], NULL) : 1, v[ROUNDS];
        size_t tasks = (size_t)(100000 * scale), i;
        starpu_data_handle_t handle;
        struct starpu_conf conf;

        setenv("STARPU_SILENT", "1", 1);
        starpu_conf_init(&conf);
        conf.ncpus = 1;
        conf.ncuda = 0;
        conf.nopencl = 0;
        if (starpu_init(&conf) != 0)
                return 1;
        starpu_void_data_register(&handle);
        for (i = 0; i < ROUNDS; i++)
                v[i] = chain_nsec(handle, tasks > 1000 ? tasks : 1000);
        starpu_data_unregister(handle);
        starpu_shutdown();
        qsort(v, ROUNDS, sizeof(*v), compare);
        printf("peer StarPU chain\tns\t%.6g\n", v[ROUNDS / 2]);
        return 0;
}
