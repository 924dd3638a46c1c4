/* SPDX-License-Identifier: ISC */
/*
 * See ini.h. The syntax is systemd's: blank lines and lines that start with # or ; are nothing; a line that
 * ends in a backslash goes on with the next one that is no comment, with a blank between them; blanks around
 * keys and values are dropped; sections and keys whose names start with X- are other programs' and skipped.
 *
 * It joins lines first, then looks at each as a whole. A line that is wrong costs itself alone, but for a
 * section's: what follows belongs to a section that is not known, and is skipped. It knows no key and no
 * value.
 */
#include "daemon/config/ini.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define BLANKS "\t\r\n "

struct parser {
        const struct rig_ini_ops *ops;
        void *userdata;
        bool sectioned; /* a section began */
        bool skipping;  /* it is none of ours */
        char *joined;   /* lines that go on, without their backslashes */
        size_t n_joined;
        unsigned first; /* the line it starts on */
};

/* Without blanks around it; written to. */
static char *strip(char *s)
{
        size_t n;

        s += strspn(s, BLANKS);
        for (n = strlen(s); n && strchr(BLANKS, s[n - 1]); n--)
                ;
        s[n] = '\0';
        return s;
}

static bool foreign(const char *name)
{
        return strncmp(name, "X-", 2) == 0;
}

static void _printf_(3, 4) wrong(struct parser *p, unsigned line, const char *fmt, ...)
{
        char sentence[256];
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(sentence, sizeof(sentence), fmt, ap);
        va_end(ap);
        p->ops->wrong(p->userdata, line, sentence);
}

static void section(struct parser *p, unsigned line, char *s)
{
        size_t n = strlen(s);

        p->sectioned = true;
        p->skipping = true;
        if (s[n - 1] != ']') {
                wrong(p, line,
                        "\"%.64s\" starts a section and has no ] at its end: what follows is not read", s);
                return;
        }
        s[n - 1] = '\0';
        s++;
        if (foreign(s))
                return;
        p->skipping = !p->ops->section(p->userdata, s);
        if (p->skipping)
                wrong(p, line, "there is no section [%.64s]: what follows is not read", s);
}

/* A whole line, joined of what its backslashes continued. */
static void whole_line(struct parser *p, unsigned line, char *s)
{
        char *equals, *key;

        s = strip(s);
        if (!*s)
                return;
        if (*s == '[') {
                section(p, line, s);
                return;
        }
        if (p->skipping)
                return;
        equals = strchr(s, '=');
        if (!equals) {
                wrong(p, line, "\"%.64s\" is no setting: write Key=Value", s);
                return;
        }
        *equals = '\0';
        key = strip(s);
        if (!*key)
                wrong(p, line, "there is no name before the =");
        else if (!p->sectioned)
                wrong(p, line, "%.64s is in no section: a line [Daemon] comes before it", key);
        else if (!foreign(key))
                p->ops->assignment(p->userdata, line, key, strip(equals + 1));
}

/* Whether its last backslash continues it: one that another one does not take away. */
static bool continues(const char *s, size_t n)
{
        size_t backslashes = 0;

        while (backslashes < n && s[n - 1 - backslashes] == '\\')
                backslashes++;
        return backslashes % 2;
}

/* One line of the file, without its end: joins it to what it continues, and looks at what is whole. */
static void file_line(struct parser *p, unsigned number, const char *s, size_t bytes)
{
        if (memchr(s, '\0', bytes)) {
                wrong(p, number, "it has a NUL byte, and is no text");
                bytes = 0;
        }
        if (bytes && s[bytes - 1] == '\r')
                bytes--;
        while (bytes && strchr(BLANKS, *s)) {
                s++;
                bytes--;
        }
        if (bytes && (*s == '#' || *s == ';'))
                return;
        if (!p->n_joined)
                p->first = number;
        memcpy(p->joined + p->n_joined, s, bytes);
        p->n_joined += bytes;
        if (continues(s, bytes)) {
                p->joined[p->n_joined - 1] = ' ';
                return;
        }
        p->joined[p->n_joined] = '\0';
        p->n_joined = 0;
        whole_line(p, p->first, p->joined);
}

int rig_ini_parse(const char *text, size_t bytes, const struct rig_ini_ops *ops, void *userdata)
{
        _cleanup_(rig_freep) char *joined = malloc(bytes + 1);
        struct parser p = {.ops = ops, .userdata = userdata, .joined = joined};
        const char *end = text + bytes, *s = text;
        unsigned number = 0;

        if (!joined)
                return -ENOMEM;
        if (bytes >= 3 && memcmp(s, "\xef\xbb\xbf", 3) == 0)
                s += 3; /* the mark of UTF-8 */
        while (s < end) {
                const char *newline = memchr(s, '\n', (size_t)(end - s)), *stop = newline ? newline : end;

                file_line(&p, ++number, s, (size_t)(stop - s));
                s = stop + 1;
        }
        if (p.n_joined)
                file_line(&p, p.first, s, 0);
        return 0;
}
