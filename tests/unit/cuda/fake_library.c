/* A library that a plugin was linked with, and that nobody finds when it is loaded. */
int fake_library_number(void);
int fake_library_number(void)
{
    return 1;
}
