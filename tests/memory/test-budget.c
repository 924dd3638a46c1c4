/* SPDX-License-Identifier: ISC */
/* Budgets and shares: M3. */
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/memory/budget.h"

Test(budget, memory_M3_a_client_cannot_exceed_its_share)
{
        struct rig_share share = {.client = "client 12 (pid 345)", .limit_bytes = 1000};
        struct rig_error e = RIG_ERROR_NULL;

        cr_assert_eq(rig_share_charge(&share, 600, &e), 0);
        cr_assert_eq(rig_share_charge(&share, 400, &e), 0);
        cr_assert_eq(rig_share_charge(&share, 1, &e), -EDQUOT);
        cr_assert_eq(share.live_bytes, 1000, "a refusal changed something");
        rig_share_return(&share, 600);
        cr_assert_eq(rig_share_charge(&share, 601, &e), -EDQUOT);
        cr_assert_eq(rig_share_charge(&share, 600, &e), 0);
}

Test(budget, memory_M3_a_refusal_says_who_how_much_what_was_left_and_the_setting)
{
        struct rig_share share = {.client = "client 12 (pid 345)", .limit_bytes = 1000, .live_bytes = 300};
        struct rig_error e = RIG_ERROR_NULL;

        rig_share_charge(&share, 4711, &e);
        cr_assert_eq(e.code, -EDQUOT);
        cr_assert(strstr(e.text, "client 12 (pid 345)") && strstr(e.text, "4711") && strstr(e.text, "700") &&
                          strstr(e.text, "1000") && strstr(e.text, "ClientMemoryMax"),
                "\"%s\"", e.text);
}

Test(budget, memory_M3_live_and_cached_bytes_never_exceed_the_budget)
{
        struct rig_budget budget = {.limit_bytes = 1000};
        struct rig_error e = RIG_ERROR_NULL;

        cr_assert_eq(rig_budget_charge(&budget, 700, &e), 0);
        rig_budget_cache(&budget, 500);
        cr_assert_eq(budget.live_bytes, 200);
        cr_assert_eq(budget.cached_bytes, 500);
        cr_assert_eq(rig_budget_charge(&budget, 301, &e), -ENOMEM);
        cr_assert(strstr(e.text, "301") && strstr(e.text, "1000") && strstr(e.text, "200") &&
                          strstr(e.text, "500") && strstr(e.text, "AdapterMemoryMax"),
                "\"%s\"", e.text);
        rig_budget_drop(&budget, 1);
        cr_assert_eq(rig_budget_charge(&budget, 301, &e), 0);
        rig_budget_uncache(&budget, 499);
        cr_assert_eq(budget.live_bytes, 1000);
        rig_budget_return(&budget, 1000);
        cr_assert_eq(budget.live_bytes + budget.cached_bytes, 0);
}

Test(budget, huge_sizes_do_not_overflow)
{
        struct rig_share share = {.client = "client 1", .limit_bytes = UINT64_MAX};
        struct rig_budget budget = {.limit_bytes = UINT64_MAX};

        cr_assert_eq(rig_share_charge(&share, UINT64_MAX, NULL), 0);
        cr_assert_eq(rig_share_charge(&share, 1, NULL), -EDQUOT);
        cr_assert_eq(rig_budget_charge(&budget, UINT64_MAX - 5, NULL), 0);
        rig_budget_cache(&budget, 100);
        cr_assert_eq(rig_budget_charge(&budget, UINT64_MAX, NULL), -ENOMEM);
        cr_assert_eq(rig_budget_charge(&budget, 6, NULL), -ENOMEM);
        cr_assert_eq(rig_budget_charge(&budget, 5, NULL), 0);
}
