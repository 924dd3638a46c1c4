/* SPDX-License-Identifier: ISC */
/* Signalling eventfds that clients passed in, without ever blocking on one. */
#ifndef RIG_SIGNALS_H
#define RIG_SIGNALS_H

#include "base/base.h"

struct rig_signals;

int rig_signals_new(struct rig_signals **ret_signals);
struct rig_signals *rig_signals_free(struct rig_signals *signals);

/* -EBADF: `fd` is no eventfd. Does not signal it. */
int rig_signals_check(int fd);

/* Adds 1 to the eventfd. A counter that is full stays full. Return: 0 or a negative errno value. */
int rig_signals_send(struct rig_signals *signals, int fd);

#endif
