# The first process of the machine, before it becomes systemd. $1: folder with `files`, $2: cgroup2 mount.
# Everything is made in a file system in memory that only this mount namespace sees.
set -eu
mount --make-rprivate /
mount -t tmpfs -o mode=755 machine "$1/memory"
cd "$1/memory"
mkdir upper work root
mount -t overlay -o lowerdir=/,upperdir="$PWD/upper",workdir="$PWD/work" overlay root
cd root
# Nothing of this machine's own services, settings and state.
rm -rf etc/systemd/system etc/sysctl.d etc/sysctl.conf etc/modules-load.d etc/docker usr/lib/sysctl.d usr/lib/modules-load.d
mkdir -p etc/systemd/system usr/lib/sysctl.d usr/lib/modules-load.d usr/lib/sysusers.d usr/lib/tmpfiles.d etc/edgeloom
: > etc/machine-id
: > etc/fstab
echo machine > etc/hostname
for folder in var/lib/docker var/lib/containerd var/log run tmp dev; do
    mkdir -p "$folder"
    mount -t tmpfs -o mode=755 machine "$folder"
done
chmod 1777 tmp
cp -a "$1/files/." .
mount -t proc proc proc
# What is not of this network namespace belongs to the machine around: systemd must not set it.
mount --bind proc/sys proc/sys
mount -o remount,ro,bind proc/sys
mount --bind "/proc/sys/net" proc/sys/net 2>/dev/null || true
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
for device in null zero full random urandom tty; do
    : > "dev/$device"
    mount --bind "/dev/$device" "dev/$device"
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ip link set lo up
mkdir .around
pivot_root . .around
umount -l /.around
# Neither the clock nor the kernel's modules are this machine's.
exec setpriv --bounding-set -sys_time,-sys_module,-sys_boot \
    env -i container=edgeloom PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    /lib/systemd/systemd --system --unit=machine.target --log-target=journal --show-status=no
