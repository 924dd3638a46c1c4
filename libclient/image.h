/* SPDX-License-Identifier: ISC */
/* Images: code that a device loaded, or that this process did for a host device. */
#ifndef RIG_CLIENT_IMAGE_H
#define RIG_CLIENT_IMAGE_H

#include "libclient/device.h"

/* A shared object in this process. Runs of host devices keep it, after the program dropped the image. */
struct rig_code {
        _Atomic uint32_t refs;
        void *handle;
        int fd; /* stays open: its number is in the name the object was loaded by */
};

struct rig_code *rig_code_ref(struct rig_code *code);
struct rig_code *rig_code_unref(struct rig_code *code);

struct rig_image {
        _Atomic uint32_t refs;
        struct rig_device *device; /* a reference */
        uint32_t id;               /* rigd's number; of a host image 0 */
        struct rig_code *code;     /* of a host image: a reference */
};

#endif
