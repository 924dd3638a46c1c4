/* SPDX-License-Identifier: ISC */
/*
 * One HTTP transfer into a file (tools/rigctl/download.h), by libcurl.
 *
 * What a server says decides nothing but where its bytes are put, and that only where it fits what is known:
 * a length that is not the file's ends the transfer before a byte is written, and so does a range that is
 * not the one that was asked for. Whether the bytes are the right ones is the caller's to check, by digest;
 * so a server, or who sits before it, can waste time and at most the length of the file on disk.
 *
 * A transfer ends where less than SLOW_BYTES a second came for SLOW_SECONDS, or where the connection takes
 * longer than CONNECT_SECONDS. Interrupting it loses nothing: what came is in the file.
 */
#include "tools/rigctl/download.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define CONNECT_SECONDS 30L
#define SLOW_SECONDS    60L
#define SLOW_BYTES      16L
#define REDIRECTS_MAX   5L

struct transfer {
        const struct ctl_download *download;
        CURL *curl;
        uint64_t at;          /* where its next byte is written */
        bool started;         /* its first byte came */
        struct rig_error why; /* it was ended here */
        char text[CURL_ERROR_SIZE];
};

int ctl_download_init(void)
{
        return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? 0 : -ENOSYS;
}

void ctl_download_deinit(void)
{
        curl_global_cleanup();
}

/* ---------------------------------------------------------------- what comes */

static long status_of(CURL *curl)
{
        long status = 0;

        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
        return status;
}

static int other_length(struct transfer *t, uint64_t bytes)
{
        return rig_error_set(&t->why, -EBADMSG, "the server's file has %" PRIu64 " bytes, not %" PRIu64,
                bytes, t->download->bytes);
}

/* "bytes 10-99/100", where the last may be "*": what is sent must be what was asked for. */
static int check_range(struct transfer *t)
{
        struct curl_header *header;
        uint64_t first, last, bytes;
        int n;

        if (curl_easy_header(t->curl, "Content-Range", 0, CURLH_HEADER, -1, &header) != CURLHE_OK)
                return rig_error_set(&t->why, -EIO, "the server sends a part without saying which");
        n = sscanf(header->value, "bytes %" SCNu64 "-%" SCNu64 "/%" SCNu64, &first, &last, &bytes);
        if (n < 2 || first != t->at)
                return rig_error_set(&t->why, -EIO, "the server sends another part: %.100s", header->value);
        return n == 3 && bytes != t->download->bytes ? other_length(t, bytes) : 0;
}

/* At the first byte: is it the file, and where does it go? */
static int start(struct transfer *t)
{
        curl_off_t length = -1;

        t->started = true;
        if (status_of(t->curl) == 206)
                return check_range(t);
        curl_easy_getinfo(t->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
        if (length >= 0 && (uint64_t)length != t->download->bytes)
                return other_length(t, (uint64_t)length);
        /* All of it comes, whatever was asked for. */
        if (t->at > 0 && ftruncate(t->download->fd, 0) < 0)
                return rig_error_set(&t->why, -errno, "%s", strerror(errno));
        t->at = 0;
        return 0;
}

static size_t receive(char *data, size_t size, size_t n, void *userdata)
{
        struct transfer *t = userdata;
        size_t done = 0;

        if (t->why.code < 0 || (!t->started && start(t) < 0))
                return CURL_WRITEFUNC_ERROR;
        if (n > t->download->bytes - t->at) {
                rig_error_set(&t->why, -EBADMSG, "the server's file has more than %" PRIu64 " bytes",
                        t->download->bytes);
                return CURL_WRITEFUNC_ERROR;
        }
        while (done < n) {
                ssize_t wrote = pwrite(t->download->fd, data + done, n - done, (off_t)t->at);

                if (wrote < 0 && errno == EINTR)
                        continue;
                if (wrote < 0) {
                        rig_error_set(&t->why, -errno, "%s", strerror(errno));
                        return CURL_WRITEFUNC_ERROR;
                }
                done += (size_t)wrote;
                t->at += (uint64_t)wrote;
        }
        return n;
}

static int look(void *userdata, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up)
{
        struct transfer *t = userdata;

        if (t->download->progress)
                t->download->progress(t->download->userdata, t->at);
        return rig_now_usec() >= t->download->deadline_usec;
}

/* ---------------------------------------------------------------- how it ended */

/* The server answered with an error. */
static int refused(struct transfer *t, struct rig_error *e)
{
        long status = status_of(t->curl);

        if (status == 404 || status == 410)
                return rig_error_set(e, -ENOENT, "the server has no such file (HTTP %ld)", status);
        /* What is there is no start of its file: from the start, then. */
        if (status == 416 && t->at > 0 && ftruncate(t->download->fd, 0) == 0)
                return rig_error_set(e, -EAGAIN, "the server has not as much (HTTP 416)");
        return rig_error_set(e, -EIO, "the server refuses (HTTP %ld)", status);
}

static int ended(struct transfer *t, CURLcode code, struct rig_error *e)
{
        const char *text = t->text[0] ? t->text : curl_easy_strerror(code);

        if (code == CURLE_OK && t->why.code == 0 && t->at != t->download->bytes)
                other_length(t, t->at);
        if (t->why.code < 0)
                return rig_error_set(e, t->why.code, "%s", t->why.text);
        if (code != CURLE_OK && rig_now_usec() >= t->download->deadline_usec)
                return rig_error_set(e, -ETIMEDOUT, "the time is over");
        switch (code) {
        case CURLE_OK:
                return 0;
        case CURLE_HTTP_RETURNED_ERROR:
                return refused(t, e);
        case CURLE_COULDNT_RESOLVE_HOST:
        case CURLE_COULDNT_RESOLVE_PROXY:
        case CURLE_COULDNT_CONNECT:
                return rig_error_set(e, -EHOSTUNREACH, "%.200s", text);
        case CURLE_PARTIAL_FILE:
        case CURLE_RECV_ERROR:
        case CURLE_SEND_ERROR:
        case CURLE_GOT_NOTHING:
        case CURLE_OPERATION_TIMEDOUT:
        case CURLE_HTTP2:
        case CURLE_HTTP2_STREAM:
                return rig_error_set(e, -EAGAIN, "%.200s", text);
        default:
                return rig_error_set(e, -EIO, "%.200s", text);
        }
}

/* ---------------------------------------------------------------- the transfer */

static CURLcode set_up(struct transfer *t)
{
        CURL *curl = t->curl;
        char range[32];
        CURLcode r = curl_easy_setopt(curl, CURLOPT_URL, t->download->url);

        snprintf(range, sizeof(range), "%" PRIu64 "-", t->at);
        r = r ? r : curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
        r = r ? r : curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
        r = r ? r : curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
        r = r ? r : curl_easy_setopt(curl, CURLOPT_MAXREDIRS, REDIRECTS_MAX);
        r = r ? r : curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
        r = r ? r : curl_easy_setopt(curl, CURLOPT_USERAGENT, "rigctl/" RIG_VERSION);
        r = r ? r : curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
        r = r ? r : curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, SLOW_SECONDS);
        r = r ? r : curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, SLOW_BYTES);
        r = r ? r : curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
        r = r ? r : curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, t->text);
        r = r ? r : curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive);
        r = r ? r : curl_easy_setopt(curl, CURLOPT_WRITEDATA, t);
        r = r ? r : curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, look);
        r = r ? r : curl_easy_setopt(curl, CURLOPT_XFERINFODATA, t);
        r = r ? r : curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
        return r || t->at == 0 ? r : curl_easy_setopt(curl, CURLOPT_RANGE, range);
}

int ctl_download(const struct ctl_download *download, struct rig_error *e)
{
        struct transfer t = {.download = download};
        off_t at = lseek(download->fd, 0, SEEK_END);
        CURLcode code;
        int r;

        if (at < 0)
                return rig_error_set(e, -errno, "%s", strerror(errno));
        t.at = (uint64_t)at;
        if (t.at == download->bytes)
                return 0;
        if (t.at > download->bytes) {
                if (ftruncate(download->fd, 0) < 0)
                        return rig_error_set(e, -errno, "%s", strerror(errno));
                t.at = 0;
        }
        t.curl = curl_easy_init();
        if (!t.curl)
                return rig_error_set(e, -ENOMEM, "no memory for a transfer");
        code = set_up(&t);
        if (code == CURLE_OK)
                code = curl_easy_perform(t.curl);
        r = ended(&t, code, e);
        curl_easy_cleanup(t.curl);
        return r;
}
