/* SPDX-License-Identifier: ISC */
/* What the files of the simulation share, and nobody else uses. */
#ifndef RIG_TEST_SIMULATE_INTERNAL_H
#define RIG_TEST_SIMULATE_INTERNAL_H

#include "tests/order/simulate.h"

/* Notes what broke, unless something did before. */
void rig_sim_broken(struct rig_sim *sim, const char *law, const char *fmt, ...) _printf_(3, 4);
void rig_sim_trace(struct rig_sim *sim, const char *fmt, ...) _printf_(2, 3);
void rig_sim_did(struct rig_sim *sim, enum rig_sim_feature feature);

struct rig_sim_device *rig_sim_device_of(const struct rig_timeline *timeline);
bool rig_sim_has_room(const struct rig_sim_device *d);
/* Whether the device's driver has no more than the mandatory ops. */
bool rig_sim_is_bare(const struct rig_sim_config *config);
void rig_sim_release(struct rig_sim_memory *memory);

#endif
