/* SPDX-License-Identifier: ISC */
/*
 * The terminal, with nothing but what all of them understand: the alternate screen, the home position,
 * erasing to the end of a line and of the screen.
 *
 * Once it is taken, each signal that ends or stops the program gives it back first, in its handler, then
 * does what it always does: the shell sees what happened, and a ^C works also while a call to rigd is waited
 * for. A program that is continued takes the terminal again. The handlers do nothing but write(),
 * tcsetattr() and signal calls. One screen, because there is one terminal.
 */
#include "tools/rigctl/screen.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "base/clock.h"
#include "tools/rigctl/text.h"

static struct termios before;
static volatile sig_atomic_t taken;
static volatile sig_atomic_t resized;

void ctl_screen_look(struct ctl_screen *ret_screen)
{
        const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
        struct ctl_screen s = {.terminal = isatty(STDOUT_FILENO), .columns = UINT32_MAX, .rows = UINT32_MAX};
        struct winsize size = {0};

        if (s.terminal) {
                ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
                s.columns = size.ws_col ? size.ws_col : 80;
                s.rows = size.ws_row ? size.ws_row : 24;
                s.colour = !(no_colour && *no_colour) && term && *term && strcmp(term, "dumb") != 0;
        }
        *ret_screen = s;
}

/* All of it, to the terminal; a handler may call it. */
static int put(const char *text, size_t bytes)
{
        while (bytes) {
                ssize_t n = write(STDOUT_FILENO, text, bytes);

                if (n < 0 && errno != EINTR)
                        return -errno;
                text += n > 0 ? n : 0;
                bytes -= n > 0 ? (size_t)n : 0;
        }
        return 0;
}

static void take(void)
{
        static const char enter[] = "\033[?1049h\033[?25l\033[H\033[2J";
        struct termios raw = before;

        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        raw.c_cc[VMIN] = 1;
        raw.c_cc[VTIME] = 0;
        tcsetattr(STDIN_FILENO, TCSANOW, &raw);
        put(enter, sizeof(enter) - 1);
        taken = true;
}

void ctl_screen_leave(void)
{
        static const char leave[] = "\033[0m\033[?25h\033[?1049l";

        if (!taken)
                return;
        taken = false;
        put(leave, sizeof(leave) - 1);
        tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

static void on_end(int signal_number)
{
        ctl_screen_leave();
        raise(signal_number); /* SA_RESETHAND: it ends the program once this returns */
}

/* Away until SIGCONT, which comes here, behind the raise(). */
static void on_stop(int signal_number)
{
        int saved = errno;

        ctl_screen_leave();
        raise(SIGSTOP);
        take();
        resized = true;
        errno = saved;
}

static void on_resize(int signal_number)
{
        resized = true;
}

int ctl_screen_enter(void)
{
        static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGABRT, SIGPIPE};
        struct sigaction end = {.sa_handler = on_end, .sa_flags = (int)SA_RESETHAND};
        struct sigaction stop = {.sa_handler = on_stop, .sa_flags = SA_RESTART};
        struct sigaction resize = {.sa_handler = on_resize, .sa_flags = SA_RESTART};

        if (tcgetattr(STDIN_FILENO, &before) < 0)
                return -ENOTTY;
        sigfillset(&end.sa_mask);
        for (size_t i = 0; i < RIG_ARRAY_SIZE(ends); i++)
                sigaction(ends[i], &end, NULL);
        sigaction(SIGTSTP, &stop, NULL);
        sigaction(SIGWINCH, &resize, NULL);
        take();
        return 0;
}

int ctl_screen_draw(const char *text, unsigned rows)
{
        char *frame = NULL;
        size_t bytes;
        FILE *f = open_memstream(&frame, &bytes);
        unsigned row;
        int r;

        if (!f)
                ctl_out_of_memory();
        fputs("\033[H", f);
        /* A row is erased before it is written: behind a full one the cursor still stands on its last
         * letter. */
        for (row = 0; row < rows && *text; row++) {
                const char *end = strchrnul(text, '\n');

                /* No newline behind the last row: the screen would scroll. */
                fprintf(f, "%s\033[K%.*s", row ? "\r\n" : "", (int)(end - text), text);
                text = *end ? end + 1 : end;
        }
        if (row < rows)
                fputs("\r\n\033[J", f);
        if (fclose(f) != 0)
                ctl_out_of_memory();
        r = put(frame, bytes);
        free(frame);
        return r;
}

int ctl_screen_key(uint64_t timeout_usec)
{
        struct pollfd keyboard = {.fd = STDIN_FILENO, .events = POLLIN};
        struct timespec left = {.tv_sec = (time_t)(timeout_usec / RIG_USEC_PER_SEC),
                .tv_nsec = (long)(timeout_usec % RIG_USEC_PER_SEC * RIG_NSEC_PER_USEC)};
        sigset_t all, old;
        unsigned char key;
        bool again;
        int r;

        /* A resize that comes before the wait must not be slept over: it is let in by ppoll() alone. */
        sigemptyset(&all);
        sigaddset(&all, SIGWINCH);
        sigaddset(&all, SIGTSTP);
        sigprocmask(SIG_BLOCK, &all, &old);
        r = resized ? -1 : ppoll(&keyboard, 1, &left, &old);
        again = resized;
        resized = false;
        sigprocmask(SIG_SETMASK, &old, NULL);
        if (again || r < 0)
                return CTL_KEY_RESIZE;
        if (r == 0)
                return CTL_KEY_NONE;
        return read(STDIN_FILENO, &key, 1) == 1 ? key : -EPIPE;
}
