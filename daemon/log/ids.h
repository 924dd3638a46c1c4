/* SPDX-License-Identifier: ISC */
/*
 * The message ids of rigd's log (MESSAGE_ID=): one for each thing that an admin may act on. An id is for
 * ever: it is not given to another message, and systemd/rigd.catalog says of each what happened, why, and
 * what to do.
 */
#ifndef RIG_LOG_IDS_H
#define RIG_LOG_IDS_H

/* rigd itself */
#define RIG_LOG_STARTED          "26d49e3d09694ca7b589586db116fe11"
#define RIG_LOG_STOPPING         "9e269c357d4e4c5a91668f3b3cae0113"
#define RIG_LOG_ENDS             "da5d2f3adf6b4603a904175cc43f4ca8"
#define RIG_LOG_WORK_LEFT_BEHIND "ecb5257dce3e43d7b075cedaf88fd8d0"
#define RIG_LOG_OUT_OF_MEMORY    "7c4e83425085489685bc0bcc88cde953"
#define RIG_LOG_STORED_UNKNOWN   "320ed53690fd419ca0fe966c49f940ed"
#define RIG_LOG_LEFT_OUT         "be9a900a76194f1d807ac0ee51587937"

/* configuration */
#define RIG_LOG_CONFIG_WRONG         "fd0aa3ce0d474ea9aa0f53beba02484b"
#define RIG_LOG_CONFIG_RELOADED      "51ca6a5874714524b55d980fceefc802"
#define RIG_LOG_CONFIG_NEEDS_RESTART "eaa1a6e510234ca9bedb02c5389defc4"
#define RIG_LOG_CONFIG_UNREADABLE    "4114d0e7dcf64784b607a77b5a404e6b"

/* clients */
#define RIG_LOG_CLIENT_BROKEN          "2a5ce7492afa43a59c886b3fb167f6fc"
#define RIG_LOG_CLIENT_UNREAD          "6ee5b00c10fd4b7a8297f217bcd5236a"
#define RIG_LOG_CLIENT_UNSERVED        "3059548cf8334ec7988eff995cbf1fe5"
#define RIG_LOG_CONNECTIONS_MAX        "ee1f6a5514824c1bba39da2c38339c0b"
#define RIG_LOG_CONNECTION_DESCRIPTORS "daf2f4a0535644ccadaf0f5f86615379"
#define RIG_LOG_ACCEPTING_PAUSED       "dd0bc2450c87435aa5efb95dc9cc3f3e"

/* adapters and devices */
#define RIG_LOG_DEVICE_LOST        "bcf0dca175444358bd8607e7a413f5a2"
#define RIG_LOG_ADAPTER_LOST       "0fb728ecce4949af8b96e5a3fb831696"
#define RIG_LOG_ADAPTER_READY      "0fe6128c709a4e99828037f39cd99a6e"
#define RIG_LOG_ADAPTER_STAYS_LOST "bb30b73baa7f47d38fd00e54227d3751"
#define RIG_LOG_WORK_CANNOT_END    "a9c723ef98d542d4a4152f314c0a6b94"
#define RIG_LOG_ADAPTER_NO_THREAD  "5573b738ae034f77bf3e603ffb76f497"

/* the bus */
#define RIG_LOG_BUS_AWAY         "8f6716ab6d294f82bc93a9c81a1a5fc8"
#define RIG_LOG_BUS_NAME_TAKEN   "8559eb01b0ff409aad3a5422860d6fbc"
#define RIG_LOG_BUS_NAME_REFUSED "920972626ad14d49b8f98f4140c720f5"

#endif
