/* SPDX-License-Identifier: ISC */
/*
 * A request that is answered later: it keeps its client and its device while a slow call runs for it, and
 * answers once, also where the client ended meanwhile and nobody hears it.
 */
#ifndef RIG_REQUEST_H
#define RIG_REQUEST_H

#include "daemon/client.h"
#include "daemon/work.h"

struct rig_request {
        struct rig_slow_job job;
        struct rig_client *client; /* referenced */
        struct rig_device *device; /* referenced, or NULL */
        uint32_t serial;
        uint32_t id;            /* the client's number for what it asks for */
        int r;                  /* what the slow call gave */
        struct rig_error error; /* and its sentence */
};

/* A request of `bytes`, which start with a struct rig_request; zeroed. Return: NULL where none can be had.
 */
void *rig_request_new(
        struct rig_client *client, struct rig_device *device, uint32_t serial, uint32_t id, size_t bytes);
/* Lets go of what it refers to, and of itself. */
void rig_request_free(struct rig_request *request);

/* Runs `run` on the device's slow thread, then `done` on the loop. */
void rig_request_defer(struct rig_request *request, void (*run)(struct rig_slow_job *job),
        void (*done)(struct rig_slow_job *job));

/* Answers that it failed, with its error or else the errno's text, and frees it. */
void rig_request_fail(struct rig_request *request);

/* Answers that a request failed with `r`, in the words of `e` where it has any. Return: RIG_TAKEN. */
int rig_client_refuse(struct rig_client *client, uint32_t serial, int r, struct rig_error *e);

/* Whether somebody still waits for the answer. */
static inline bool rig_request_heard(const struct rig_request *request)
{
        return request->client->state != RIG_CLIENT_ENDED;
}

/*
 * What a message names must be the client's: a device, a buffer, a number that is free. They end the client
 * and give NULL, or a negative errno value.
 */
struct rig_device *rig_client_device(struct rig_client *client, uint32_t id);
struct rig_buffer *rig_client_buffer(struct rig_client *client, uint32_t id);
/* Enters what was asked for under its number. A number that was asked for twice at once ends the client. */
int rig_client_enter(
        struct rig_client *client, struct rig_table *table, uint32_t id, void *object, const char *what);
int rig_client_check_free(
        struct rig_client *client, const struct rig_table *table, uint32_t id, const char *what);

/* The handlers, by what they are about. Each returns as rig_client_request() does. */
int rig_request_buffer_new(struct rig_client *client, const struct rig_msg_buffer_new *msg);
int rig_request_buffer_adopt(
        struct rig_client *client, const struct rig_msg_buffer_adopt *msg, struct rig_packet_fds *fds);
int rig_request_buffer_borrow(struct rig_client *client, const struct rig_msg_buffer_borrow *msg);
int rig_request_buffer_export(struct rig_client *client, const struct rig_msg_buffer_export *msg);
int rig_request_buffer_import(
        struct rig_client *client, const struct rig_msg_buffer_import *msg, struct rig_packet_fds *fds);
int rig_request_buffer_view(struct rig_client *client, const struct rig_msg_buffer_view *msg);
int rig_request_image_load(
        struct rig_client *client, const struct rig_msg_image_load *msg, struct rig_packet_fds *fds);
int rig_request_image_entry(struct rig_client *client, const struct rig_msg_image_entry *msg);
int rig_request_work_new(struct rig_client *client, const struct rig_msg_work_new *msg);
int rig_request_buffer_wait(struct rig_client *client, const struct rig_msg_buffer_wait *msg);
int rig_request_notify(struct rig_client *client, const struct rig_msg_notify *msg);
int rig_request_notify_eventfd(
        struct rig_client *client, const struct rig_msg_notify_eventfd *msg, struct rig_packet_fds *fds);

#endif
