/* SPDX-License-Identifier: ISC */
/*
 * See budget.h. Two counters and their limits. Invariants: a share's live bytes are part of its budget's,
 * what is charged keeps the sums within the limits, and nothing is returned that was not charged (asserted:
 * our own books).
 *
 * A budget's live and cached bytes compete for one limit, so a full cache makes a charge fail. Dropping
 * caches and trying again is the caller's: this file knows neither caches nor clients.
 */
#include "daemon/memory/budget.h"

#include <inttypes.h>

int rig_share_charge(struct rig_share *share, uint64_t bytes, struct rig_error *e)
{
        /* A limit may have come down below what is held. */
        uint64_t left = share->limit_bytes - RIG_MIN(share->live_bytes, share->limit_bytes);

        if (bytes > left)
                return rig_error_set(e, -EDQUOT,
                        "%s asked for %" PRIu64 " bytes and has %" PRIu64 " of its share of %" PRIu64
                        " left (ClientMemoryMax)",
                        share->client, bytes, left, share->limit_bytes);
        share->live_bytes += bytes;
        return 0;
}

void rig_share_return(struct rig_share *share, uint64_t bytes)
{
        rig_assert(bytes <= share->live_bytes);
        share->live_bytes -= bytes;
}

int rig_budget_charge(struct rig_budget *budget, uint64_t bytes, struct rig_error *e)
{
        uint64_t held = budget->live_bytes + budget->cached_bytes;

        rig_assert(held <= budget->limit_bytes);
        if (bytes > budget->limit_bytes - held)
                return rig_error_set(e, -ENOMEM,
                        "%" PRIu64 " bytes do not fit: of the adapter's %" PRIu64 ", %" PRIu64
                        " are in use and %" PRIu64 " cached (AdapterMemoryMax)",
                        bytes, budget->limit_bytes, budget->live_bytes, budget->cached_bytes);
        budget->live_bytes += bytes;
        return 0;
}

void rig_budget_return(struct rig_budget *budget, uint64_t bytes)
{
        rig_assert(bytes <= budget->live_bytes);
        budget->live_bytes -= bytes;
}

void rig_budget_cache(struct rig_budget *budget, uint64_t bytes)
{
        rig_budget_return(budget, bytes);
        budget->cached_bytes += bytes;
}

void rig_budget_uncache(struct rig_budget *budget, uint64_t bytes)
{
        rig_budget_drop(budget, bytes);
        budget->live_bytes += bytes;
}

void rig_budget_drop(struct rig_budget *budget, uint64_t bytes)
{
        rig_assert(bytes <= budget->cached_bytes);
        budget->cached_bytes -= bytes;
}
