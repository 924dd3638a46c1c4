/* SPDX-License-Identifier: ISC */
/* The terminal: what it can show, and as the whole screen that `top` draws on. */
#ifndef RIGCTL_SCREEN_H
#define RIGCTL_SCREEN_H

#include "base/base.h"

struct ctl_screen {
        bool terminal;    /* stdout is one */
        bool colour;      /* and shows colours, which nobody refused */
        unsigned columns; /* UINT32_MAX: lines have no end */
        unsigned rows;
};

/* Looks at what stdout is now. */
void ctl_screen_look(struct ctl_screen *ret_screen);

/*
 * Takes the terminal over: an empty screen beside the one that was there, keys without Enter. It is given
 * back by ctl_screen_leave(), and by any signal that ends the program. -ENOTTY.
 */
int ctl_screen_enter(void);
/* Gives the terminal back where it was taken. Async-signal-safe. */
void ctl_screen_leave(void);

/* Draws a whole screen: lines, each cut to the screen already. The last need not end. Return: 0, or -errno.
 */
int ctl_screen_draw(const char *text, unsigned rows);

#define CTL_KEY_NONE   0  /* the time is over */
#define CTL_KEY_RESIZE -1 /* the screen has another size, or was away */

/*
 * Waits for a key, for at most so long. Return: its letter; CTL_KEY_NONE; CTL_KEY_RESIZE; -EPIPE: the
 * keyboard is gone.
 */
int ctl_screen_key(uint64_t timeout_usec);

#endif
