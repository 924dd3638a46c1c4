/* SPDX-License-Identifier: ISC */
/*
 * rigd as a program: its options, its sockets, how it starts and how it ends.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "tests/e2e/wire.h"

TestSuite(daemon, .timeout = 120);

static char text[16384];

#define runs(...) rigd_run(text, sizeof(text), __VA_ARGS__, NULL)
#define says(s)   cr_assert_not_null(strstr(text, s), "it says \"%s\", not \"%s\"", text, s)

Test(daemon, help_and_version)
{
        static const char *const settings[] = {"PollUSec", "ClientsMax", "ClientObjectsMax",
                "ClientMemoryMax", "ClientRunsMax", "ClientCacheMax", "ClientQueueMax", "AdapterMemoryMax"};

        cr_assert_eq(runs("--help"), 0);
        says("usage: rigd --socket PATH");
        says("--private FD");
        for (size_t i = 0; i < RIG_ARRAY_SIZE(settings); i++)
                says(settings[i]);
        cr_assert_eq(runs("--version"), 0);
        says("rigd 0.1.0\n");
}

Test(daemon, options_that_are_wrong)
{
        cr_assert_eq(runs("--wrong"), 1);
        says("rigd: there is no option --wrong; rigd --help lists the options");
        cr_assert_eq(runs("--socket"), 1);
        says("--socket needs a value");
        cr_assert_eq(runs("here"), 1);
        says("\"here\" is no option");
        cr_assert_eq(runs("--log-level", "loud"), 1);
        says("--log-level: there is no level \"loud\"");
        cr_assert_eq(runs("--socket", "/tmp/x", "--private", "0"), 1);
        says("--socket and --private exclude each other");
}

Test(daemon, nothing_to_serve)
{
        cr_assert_eq(rigd_run(text, sizeof(text), NULL), 1);
        says("nothing to serve: give --socket PATH, --private FD, or start it from a systemd socket");
}

Test(daemon, settings_that_are_wrong)
{
        static const struct {
                const char *set, *says;
        } rows[] = {{"Nonsense=1", "there is no setting \"Nonsense\"; rigd --help lists"},
                {"ClientsMax", "\"ClientsMax\" is no setting: write Key=Value"},
                {"=1", "there is no setting \"\""}, {"ClientsMax=", "ClientsMax: \"\" is no number"},
                {"ClientsMax=many", "ClientsMax: \"many\" is no number"},
                {"ClientsMax=-1", "\"-1\" is no number"}, {"ClientsMax=0", "ClientsMax: 0 is less than 1"},
                {"ClientsMax=1K", "ClientsMax: \"1K\" is no number"},
                {"ClientMemoryMax=1X",
                        "ClientMemoryMax: \"1X\" is no size: write a number of bytes, with K, M, G or T"},
                {"ClientMemoryMax=1KK", "\"1KK\" is no size"},
                {"ClientMemoryMax=99999999999T", "is too large"},
                {"ClientMemoryMax=99999999999999999999999", "is too large"},
                {"PollUSec= 5", "\" 5\" is no number"},
                {"ClientQueueMax=1", "ClientQueueMax: 1 is less than 65536"},
                {"clientsmax=5", "there is no setting"}};

        for (size_t i = 0; i < RIG_ARRAY_SIZE(rows); i++) {
                cr_assert_eq(runs("--set", rows[i].set), 1, "%s", rows[i].set);
                says("rigd: --set: ");
                says(rows[i].says);
        }
}

Test(daemon, settings_that_are_right)
{
        struct rigd rigd;
        struct wire w;

        rigd_start(&rigd, "--set", "ClientObjectsMax=17", "--set", "ClientMemoryMax=3G", "--set",
                "ClientRunsMax=infinity", "--set", "PollUSec=0", NULL);
        wire_open(&w, &rigd, WIRE_RING);
        cr_assert_eq(w.hello.objects, 17u);
        cr_assert_eq(w.hello.memory, UINT64_C(3) << 30);
        cr_assert_eq(w.hello.runs, RIG_PROTO_BYTES_MAX);
        cr_assert_eq(w.hello.version, (uint32_t)RIG_PROTOCOL_VERSION);
        wire_close(&w);
        rigd_stop(&rigd);
}

/* ---------------------------------------------------------------- --private */

/* A rigd that serves `fd`, without the exec of rigd_start(). */
static pid_t start_private(int fd)
{
        char number[16];
        pid_t pid;

        fflush(NULL);
        pid = fork();
        cr_assert_geq(pid, 0);
        if (pid)
                return pid;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        fcntl(fd, F_SETFD, 0);
        snprintf(number, sizeof(number), "%d", fd);
        execl(rigd_program(), "rigd", "--private", number, NULL);
        _exit(127);
}

BOTH(daemon, a_private_rigd_serves_one_connection_and_ends_with_it)
{
        int s[2], status;
        struct wire w;
        pid_t pid;

        cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s), 0);
        pid = start_private(s[1]);
        close(s[1]);
        wire_open_fd(&w, s[0], transport);
        wire_hello(&w);
        wire_device(&w, 1, "memory:M");
        munmap(wire_buffer(&w, 1, 1, 4096), 4096);
        wire_fill(&w, 1, 1, 7);
        wire_run(&w, 1, 1, 0);
        wire_wait(&w, 1, 1);
        wire_close(&w);
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* The terminal's interrupt is the program's; SIGTERM ends it. */
Test(daemon, a_private_rigd_outlives_an_interrupt)
{
        int s[2], status;
        struct wire w;
        pid_t pid;

        cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s), 0);
        pid = start_private(s[1]);
        close(s[1]);
        wire_open_fd(&w, s[0], WIRE_RING);
        wire_hello(&w);
        kill(pid, SIGINT);
        wire_sync(&w);
        kill(pid, SIGTERM);
        wire_end(&w);
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* One whose program never says a word, or says nonsense, ends too. */
Test(daemon, a_private_rigd_ends_with_a_client_that_says_nothing)
{
        int s[2], status;
        struct wire w;
        pid_t pid;

        cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s), 0);
        pid = start_private(s[1]);
        close(s[1]);
        close(s[0]);
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);

        cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s), 0);
        pid = start_private(s[1]);
        close(s[1]);
        wire_open_fd(&w, s[0], WIRE_SOCKET);
        wire_send_raw(&w, "\xff", 1, NULL, 0);
        wire_broken(&w, EBADMSG, "");
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* rigd with descriptor `fd` as its 5. */
static int run_private(int fd)
{
        int out = memfd_create("out", 0), status;
        pid_t pid;

        fflush(NULL);
        pid = fork();
        cr_assert_geq(pid, 0);
        if (pid == 0) {
                dup2(out, STDERR_FILENO);
                dup2(fd, 5);
                execl(rigd_program(), "rigd", "--private", "5", NULL);
                _exit(127);
        }
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        memset(text, 0, sizeof(text));
        cr_assert_geq(pread(out, text, sizeof(text) - 1, 0), 0);
        close(out);
        close(fd);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Test(daemon, private_descriptors_that_are_no_connection)
{
        static const char *const wrong[] = {"-1", "99", "x", "", "5x", "4294967296"};
        int s[2];

        for (size_t i = 0; i < RIG_ARRAY_SIZE(wrong); i++) {
                cr_assert_eq(runs("--private", wrong[i]), 1);
                says("is no open descriptor");
        }
        cr_assert_eq(run_private(open("/dev/null", O_RDWR | O_CLOEXEC)), 1);
        says("descriptor 5 is no connected SOCK_SEQPACKET socket");
        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s), 0);
        cr_assert_eq(run_private(s[0]), 1);
        says("descriptor 5 is no connected SOCK_SEQPACKET socket");
        close(s[1]);
}

/* ---------------------------------------------------------------- --socket */

Test(daemon, a_second_rigd_on_a_path_is_refused)
{
        struct rigd rigd;
        struct wire w;

        rigd_start(&rigd, NULL);
        cr_assert_eq(runs("--socket", rigd.path), 1);
        says("cannot listen on");
        says("another rigd does");
        wire_open(&w, &rigd, WIRE_RING); /* the first one is still there */
        wire_close(&w);
        rigd_stop(&rigd);
}

Test(daemon, the_socket_of_a_killed_rigd_is_replaced)
{
        struct rigd rigd, dead;
        struct wire w;
        struct stat st;

        rigd_start(&dead, NULL);
        kill(dead.pid, SIGKILL);
        rigd_wait(&dead);
        cr_assert_eq(stat(dead.path, &st), 0);
        rigd_start(&rigd, "--socket", dead.path, NULL); /* the last --socket counts */
        memcpy(rigd.path, dead.path, sizeof(rigd.path));
        wire_open(&w, &rigd, WIRE_SOCKET);
        wire_close(&w);
        rigd_stop(&rigd);
        rigd_forget(&dead);
}

Test(daemon, paths_that_cannot_be_listened_on)
{
        char folder[] = "/tmp/rigd-XXXXXX", path[300];
        int fd;

        cr_assert_not_null(mkdtemp(folder));
        snprintf(path, sizeof(path), "%s/file", folder);
        fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        cr_assert_geq(fd, 0);
        close(fd);
        cr_assert_eq(runs("--socket", path), 1);
        says("there is a file, and it is no socket");
        cr_assert_eq(access(path, F_OK), 0, "it removed what is not its own");
        unlink(path);
        snprintf(path, sizeof(path), "%s/none/sock", folder);
        cr_assert_eq(runs("--socket", path), 1);
        says("No such file or directory");
        snprintf(path, sizeof(path), "%s/%0200d", folder, 1);
        cr_assert_eq(runs("--socket", path), 1);
        says("--socket: the path has");
        rmdir(folder);
}

/* ---------------------------------------------------------------- socket activation */

/* rigd as systemd starts it, with `n` descriptors, of which the first is `fd`. Return: its process. */
static pid_t activate(int fd, unsigned n, int out)
{
        char number[16], pid_text[16];
        pid_t pid;

        fflush(NULL);
        pid = fork();
        cr_assert_geq(pid, 0);
        if (pid)
                return pid;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(out, STDERR_FILENO);
        dup2(fd, 3);
        for (unsigned i = 1; i < n; i++)
                dup2(fd, 3 + (int)i);
        fcntl(3, F_SETFD, 0);
        snprintf(number, sizeof(number), "%u", n);
        snprintf(pid_text, sizeof(pid_text), "%d", (int)getpid());
        setenv("LISTEN_FDS", number, 1);
        setenv("LISTEN_PID", pid_text, 1);
        execl(rigd_program(), "rigd", NULL);
        _exit(127);
}

static int listening(struct sockaddr_un *address, int type)
{
        char folder[] = "/tmp/rigd-XXXXXX";
        int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

        cr_assert_not_null(mkdtemp(folder));
        *address = (struct sockaddr_un){.sun_family = AF_UNIX};
        snprintf(address->sun_path, sizeof(address->sun_path), "%s/s", folder);
        cr_assert_eq(bind(fd, (struct sockaddr *)address, sizeof(*address)), 0);
        cr_assert_eq(listen(fd, 10), 0);
        return fd;
}

static void remove_socket(struct sockaddr_un *address)
{
        unlink(address->sun_path);
        *strrchr(address->sun_path, '/') = '\0';
        rmdir(address->sun_path);
}

BOTH(daemon, a_socket_from_systemd)
{
        struct sockaddr_un address;
        int fd = listening(&address, SOCK_SEQPACKET), s, status;
        pid_t pid = activate(fd, 1, STDERR_FILENO);
        struct wire w;

        close(fd);
        s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        cr_assert_eq(connect(s, (struct sockaddr *)&address, sizeof(address)), 0);
        wire_open_fd(&w, s, transport);
        wire_hello(&w);
        wire_sync(&w);
        kill(pid, SIGTERM);
        wire_end(&w);
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        cr_assert_eq(access(address.sun_path, F_OK), 0, "it removed systemd's socket");
        remove_socket(&address);
}

static void activation_fails(int fd, unsigned n)
{
        int out = memfd_create("out", 0), status;
        pid_t pid = activate(fd, n, out);

        cr_assert_eq(waitpid(pid, &status, 0), pid);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1);
        memset(text, 0, sizeof(text));
        cr_assert_gt(pread(out, text, sizeof(text) - 1, 0), 0);
        says("it takes one, a listening SOCK_SEQPACKET Unix socket (ListenSequentialPacket=)");
        close(out);
        close(fd);
}

Test(daemon, sockets_from_systemd_that_are_wrong)
{
        struct sockaddr_un address;
        int s[2];

        activation_fails(listening(&address, SOCK_STREAM), 1);
        remove_socket(&address);
        activation_fails(listening(&address, SOCK_SEQPACKET), 2);
        remove_socket(&address);
        cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s), 0);
        activation_fails(s[0], 1);
        close(s[1]);
        activation_fails(open("/dev/null", O_RDWR | O_CLOEXEC), 1);
}

/* ---------------------------------------------------------------- its end */

/* Clients with all kinds of things to wait for see the end of the connection. */
static void all_see_the_end(enum wire_transport transport, int signal)
{
        struct rigd rigd;
        struct wire w[4];

        rigd_start(&rigd, NULL);
        for (unsigned i = 0; i < 4; i++) {
                wire_open(&w[i], &rigd, transport);
                wire_device(&w[i], 1, "host");
                munmap(wire_buffer(&w[i], 1, 1, 4096), 4096);
                wire_fill(&w[i], 1, 1, 1);
                wire_run(&w[i], 1, 1, 0); /* never done */
                wire_sync(&w[i]);
        }
        wire_ask_wait(&w[1], 1, 1);
        wire_send(&w[2], RIG_MSG_NOTIFY,
                &(struct rig_msg_notify){.serial = wire_serial(&w[2]), .device = 1, .value = 1});
        for (unsigned i = 0; i < 3; i++)
                wire_sync(&w[i]);
        rigd_pause(&rigd);
        wire_send(&w[3], RIG_MSG_SYNC, &(struct rig_msg_sync){.serial = wire_serial(&w[3])});
        kill(rigd.pid, signal);
        rigd_resume(&rigd);
        if (signal == SIGKILL)
                rigd_kill(&rigd);
        else
                rigd_stop(&rigd);
        for (unsigned i = 0; i < 4; i++)
                wire_end(&w[i]);
}

BOTH(daemon, clients_of_a_killed_rigd_see_its_end)
{
        all_see_the_end(transport, SIGKILL);
}

BOTH(daemon, clients_of_a_stopped_rigd_see_its_end)
{
        all_see_the_end(transport, SIGTERM);
}

Test(daemon, an_interrupt_stops_it)
{
        struct rigd rigd;
        int status;

        rigd_start(&rigd, NULL);
        kill(rigd.pid, SIGINT);
        status = rigd_wait(&rigd);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        cr_assert_neq(access(rigd.path, F_OK), 0);
        cr_assert(rigd_log_has(&rigd, "stopping: Interrupt"));
        rigd_forget(&rigd);
}

/* Stopped in the middle of everything: large copies on memory and disk, memory on its way back. */
BOTH(daemon, it_stops_cleanly_with_work_in_flight)
{
        for (unsigned round = 0; round < 5; round++) {
                int file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
                struct rigd rigd;
                struct wire w;

                rigd_start(&rigd, NULL);
                wire_open(&w, &rigd, transport);
                wire_device(&w, 1, "memory:M,async");
                wire_device(&w, 2, "disk");
                wire_buffer(&w, 1, 1, 32 << 20);
                wire_buffer(&w, 2, 1, 32 << 20);
                wire_adopt(&w, 3, 2, file, 0, 32 << 20);
                wire_copy(&w, 1, 1);
                wire_copy(&w, 2, 2);
                for (unsigned i = 0; i < 10; i++) {
                        wire_run(&w, 1, 1, 2, 0);
                        wire_run(&w, 2, 3, 1, 0);
                }
                wire_drop_buffer(&w, 1);
                wire_sync(&w);
                rigd_stop(&rigd);
                wire_end(&w);
                close(file);
        }
}
