/* SPDX-License-Identifier: ISC */
/* What the files of the model library share. The numbers of the protocol are its own on purpose: what a
 * client has wrong, this does not have wrong the same way. (QEMU, docs/interop/vfio-user.rst;
 * <linux/vfio.h>) */
#ifndef RIG_MODEL_INTERNAL_H
#define RIG_MODEL_INTERNAL_H

#include <pthread.h>
#include <stdio.h>

#include "tests/models/model.h"

#define CONFIG_BYTES  4096u
#define CONFIG_REGION 7u
#define MAX_MESSAGE   (2u << 20)
#define MAX_DATA      (1u << 20)
#define MAX_FDS       8u
#define MAX_VECTORS   64u
#define ANSWER_USEC   UINT64_C(5000000)

struct message_header {
        uint16_t id, command;
        uint32_t bytes, flags, error;
};
#define FLAG_REPLY    1u
#define FLAG_TYPE     15u
#define FLAG_NO_REPLY 16u
#define FLAG_ERROR    32u

struct message {
        struct message_header header;
        uint8_t *body;  /* `few`, or memory of its own; a byte more than it has is there */
        uint32_t bytes; /* of the body */
        uint8_t few[64];
        int fds[MAX_FDS];
        unsigned n_fds;
        struct message *next;
};

/* What came on the socket and was not looked at yet: several messages are received by one call. Descriptors
 * belong to the last message that begins in the bytes they came with, whose end is `fds_end`. */
struct received {
        uint8_t data[4096];
        uint32_t start, end, fds_end;
        int fds[MAX_FDS];
        unsigned n_fds;
};

struct mapping {
        uint64_t address, bytes;
        uint8_t *host; /* or NULL: by message */
        unsigned access;
};

struct model {
        const struct model_description *description;
        struct model_options options;
        void *own;
        FILE *trace;
        pthread_mutex_t stop_lock;
        bool stop; /* under it */

        uint8_t config[CONFIG_BYTES], writable[CONFIG_BYTES];
        uint32_t pcie_at, msi_at, msix_at, rebar_at;
        uint64_t bar_bytes[MODEL_BARS]; /* now */
        uint64_t most_bytes[MODEL_BARS];
        uint8_t *memory[MODEL_BARS];
        int memory_fd[MODEL_BARS];
        unsigned n_resets;

        int fd; /* set and closed under stop_lock */
        int twin;
        struct received received;
        uint16_t next_id;
        uint32_t client_data; /* the most data it takes in a message */
        struct message *queue, **queue_end;

        struct mapping *mappings;
        unsigned n_mappings, mappings_room;
        int msi[MAX_VECTORS], msix[MAX_VECTORS];

        char fault_name[32];
        uint64_t fault_at, fault_count;
        bool hung, died, gone;
        unsigned n_faults;
        char first_fault[160];
};

/* model-config.c */
int config_init(struct model *model);
void config_reset(struct model *model);
void config_read(const struct model *model, uint32_t at, uint8_t *data, uint32_t bytes);
/* True: the write asked for a reset of the function. */
bool config_write(struct model *model, uint32_t at, const uint8_t *data, uint32_t bytes);
bool config_decodes(const struct model *model);
bool config_msi_enabled(const struct model *model);
bool config_msix_enabled(const struct model *model);

/* model-dma.c */
int dma_map(struct model *model, const uint8_t *body, uint32_t bytes, int fd);
void dma_unmap(struct model *model, uint64_t address, uint64_t bytes, bool all);

/* model-protocol.c */
int protocol_send(int fd, const void *header, size_t header_bytes, const void *data, size_t bytes,
        const int *fds, unsigned n_fds);
/* 1; 0: the sender has left; -EAGAIN: nothing came, at once or within the socket's timeout. `fd` is one of
 * the model's two. */
int protocol_receive(struct model *model, int fd, bool wait, struct message **ret_message);
void message_free(struct message *message);

/* model.c */
void model_reset(struct model *model);

#endif
