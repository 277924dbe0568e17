/* The first process of a system whose image has none: runs a command, hands signals on, reaps.
 *
 * Built by tools/system-init, without a C library, so that it runs in an image that has nothing.
 * Its end is the command's, with whose status it ends; the kernel then ends all the rest.
 */
/* The numbers of the kernel's calls. */
#if defined(__x86_64__)
enum { WRITE = 1, SIGPROCMASK = 14, CLONE = 56, EXECVE = 59, WAIT4 = 61, KILL = 62, SETSID = 112, SIGTIMEDWAIT = 128, EXIT_GROUP = 231 };
#elif defined(__aarch64__)
enum { WRITE = 64, EXIT_GROUP = 94, KILL = 129, SIGPROCMASK = 135, SIGTIMEDWAIT = 137, SETSID = 157, CLONE = 220, EXECVE = 221, WAIT4 = 260 };
#endif
enum { EXIT_NOT_EXECUTED = 127, EXIT_BY_SIGNAL = 128, NO_HANG = 1, SET_MASK = 2, CHILD = 17 };

static long ask(long number, long a, long b, long c, long d)
{
#if defined(__x86_64__)
    long told;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = 0;
    __asm__ volatile("syscall" : "=a"(told) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return told;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c, x3 __asm__("x3") = d, x4 __asm__("x4") = 0;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
    return x0;
#endif
}

/* As the kernel leaves the stack: argc, argv and its 0, the environment. */
__attribute__((used, noreturn)) static void run(long *stack)
{
    char **arguments = (char **)(stack + 1);
    char **environment = arguments + stack[0] + 1;
    unsigned long all = ~0UL, before = 0;
    static const char wrong[] = "the command of the image cannot be run\n";
    long command;

    /* Blocked, signals wait for an init; else the kernel drops those that it does not handle. */
    ask(SIGPROCMASK, SET_MASK, (long)&all, (long)&before, sizeof all);
    command = ask(CLONE, CHILD, 0, 0, 0);
    if (command == 0) {
        ask(SETSID, 0, 0, 0, 0);
        ask(SIGPROCMASK, SET_MASK, (long)&before, 0, sizeof all);
        ask(EXECVE, (long)arguments[1], (long)(arguments + 1), (long)environment, 0);
        ask(WRITE, 2, (long)wrong, sizeof wrong - 1, 0);
        ask(EXIT_GROUP, EXIT_NOT_EXECUTED, 0, 0, 0);
    }
    for (;;) {
        long signal = ask(SIGTIMEDWAIT, (long)&all, 0, 0, sizeof all);
        long ended;
        int status = 0;
        if (signal > 0 && signal != CHILD)
            ask(KILL, command, signal, 0, 0);
        while ((ended = ask(WAIT4, -1, (long)&status, NO_HANG, 0)) > 0)
            if (ended == command)
                ask(EXIT_GROUP, status & 0x7f ? EXIT_BY_SIGNAL + (status & 0x7f) : status >> 8 & 0xff, 0, 0, 0);
    }
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start: mov %rsp, %rdi\nand $-16, %rsp\ncall run\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n_start: mov x0, sp\nbl run\n");
#endif
