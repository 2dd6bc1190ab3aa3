"""What the kernel and the disk say; standard library only, for the keeper loads a part of it. Only here is /proc read.

proc         where its files are, and how one is read
process      one process: its stat, pidfd, wait status
processes    all of them, their children, environments and commands
stats        the stats of all in one pass
usage        what a process has used, and where it waits
descriptors  what a process has open
clients      connections to sockets, by path
trust        whom a unix socket leads to
own_socket   a socket of ours, made anew when it is lost
inotify      what changed in files and folders
host         memory, pressure and load of the host
cgroups      memory cgroups and their counters, and a cgroup for each launch
descent      the number that all processes below a launch inherit
kernel_log   what the kernel wrote of our processes
files        file systems, locks, cores
durable      files that are on disk when a call returns
precedence   our place among the sessions that share the cores"""
