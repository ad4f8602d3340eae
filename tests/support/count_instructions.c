/* count_instructions.c: a plugin of QEMU (7.2 and newer that have version 1 of its plugins) that prints how many
 * instructions a program ran, which is the same in each run and on a busy machine. Its header is in no package of
 * Debian, so that what is used of it stands here.
 *
 *     gcc -O2 -shared -fPIC tests/support/count_instructions.c -o count.so
 *     qemu-aarch64 -plugin ./count.so -d plugin PROGRAM...
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))
enum { ADD_U64 = 0 };
typedef uint64_t plugin_id;
struct qemu_plugin_tb;
extern void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, void (*cb)(plugin_id id, struct qemu_plugin_tb *tb));
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, int op, void *to, uint64_t add);
extern void qemu_plugin_register_atexit_cb(plugin_id id, void (*cb)(plugin_id id, void *user), void *user);

EXPORT int qemu_plugin_version = 1;
EXPORT int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv);

static uint64_t n_instructions;

static void translated(plugin_id id, struct qemu_plugin_tb *tb)
{
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(tb, ADD_U64, &n_instructions, qemu_plugin_tb_n_insns(tb));
}

static void ended(plugin_id id, void *user)
{
    (void)id;
    (void)user;
    fprintf(stderr, "instructions: %llu\n", (unsigned long long)n_instructions);
}

EXPORT int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
    (void)info;
    (void)argc;
    (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}
