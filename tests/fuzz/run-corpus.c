/* SPDX-License-Identifier: ISC */
/*
 * Runs a fuzzer over the files of folders, as an ordinary test: every input once, then with each byte
 * changed in a few ways, and cut at each place. Where libFuzzer is built in, its own main takes the place of
 * this one.
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "tests/fuzz/fuzz.h"

#define INPUT_MAX  (128 * 1024)
#define CHANGE_MAX 512 /* longer inputs are run as they are */

static uint8_t input[INPUT_MAX];

static void run_changed(size_t n)
{
        static const uint8_t flips[] = {0x01, 0x08, 0x20, 0x80, 0xff};

        for (size_t i = 0; i < n; i++) {
                LLVMFuzzerTestOneInput(input, i);
                for (size_t k = 0; k < RIG_ARRAY_SIZE(flips); k++) {
                        input[i] ^= flips[k];
                        LLVMFuzzerTestOneInput(input, n);
                        input[i] ^= flips[k];
                }
        }
}

static int run_file(const char *folder, const char *name)
{
        char path[4096];
        FILE *f;
        size_t n;

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        f = fopen(path, "re");
        if (!f) {
                fprintf(stderr, "%s: %m\n", path);
                return -1;
        }
        n = fread(input, 1, sizeof(input), f);
        fclose(f);
        LLVMFuzzerTestOneInput(input, n);
        if (n <= CHANGE_MAX)
                run_changed(n);
        return 0;
}

/* Return: the files run, or -1. */
static int run_folder(const char *folder)
{
        struct dirent *entry;
        DIR *d = opendir(folder);
        int n = 0;

        if (!d) {
                fprintf(stderr, "%s: %m\n", folder);
                return -1;
        }
        while (n >= 0 && (entry = readdir(d)))
                if (entry->d_name[0] != '.')
                        n = run_file(folder, entry->d_name) < 0 ? -1 : n + 1;
        closedir(d);
        return n;
}

int main(int argc, char **argv)
{
        int n, total = 0;

        for (int i = 1; i < argc; i++) {
                n = run_folder(argv[i]);
                if (n < 0)
                        return 1;
                total += n;
        }
        printf("%d inputs\n", total);
        return total > 0 ? 0 : 1;
}
