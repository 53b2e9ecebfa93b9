// fake_files.c -- the files and folders of the faked system, beside those that it can read (fake.c).
#include "fake.h"
#include "os/os.h"

size_t hak_os_folder(char *path, size_t bytes)
{
    (void)path;
    (void)bytes;
    return 0;
}

// What is printed and what is appended to files form one text.
bool hak_os_append(const char *path, const char *text, size_t length)
{
    (void)path;
    hak_os_print(text, length);
    return true;
}
