# The hook: puts what an agent says of itself into Vigil's spool, as one file, by rename (docs: how it decides, Hooks).
#
#   sh hook.sh              the agent's JSON payload comes on standard input
#   sh hook.sh '{…}'        or as the first argument
#   sh hook.sh heartbeat    a sign of life; standard input is left alone, so that loops can call it
#
# No agent is held up or fails because of us. Nothing is printed and the end is always 0. A pipe that stays open costs WAIT_S.
# All that comes is read, also outside a session and beyond what the spool takes: agents have died of a pipe nobody read.
exec >/dev/null 2>&1
trap 'exit 0' EXIT # also where sh itself gives up, because it cannot fork
LC_ALL=C           # a length is in bytes
umask 077

PAYLOAD_BYTES=1047552 # the spool takes files of 1 MiB: 1 KiB is left for who says it
WAIT_S=2

read_input() {
    [ -t 0 ] && return
    limit=
    command -v timeout >/dev/null && limit="timeout $WAIT_S"
    # What waits is `cat`, which holds nothing back when it is ended; `head` then ends by itself.
    $limit cat | {
        head -c $((PAYLOAD_BYTES + 1))
        cat >/dev/null
    }
}

# The same in one process instead of seven, where there is perl: this is what an agent waits for (docs/performance.md, hook).
IN_PERL='
    my ($most_bytes, $wait_s) = @ARGV;
    my $payload = "";
    eval {
        local $SIG{ALRM} = sub { die };
        alarm $wait_s;
        while (sysread STDIN, my $part, 65536) { $payload .= $part if length $payload <= $most_bytes }
    };
    alarm 0;
    my ($spool, $launch, $session, $token) = @ENV{qw(VIGIL_SPOOL VIGIL_LAUNCH VIGIL_SESSION VIGIL_TOKEN)};
    exit 0 unless length $spool && length $launch;
    $payload = q({"event":"too-large"}) if length $payload > $most_bytes;
    $payload = "{}" unless $payload =~ /\S/;
    my $id = open(my $random, "<", "/proc/sys/kernel/random/uuid") ? <$random> : time . rand;
    $id =~ s/\s//g;
    my $name = sprintf "%07d-%s.json", $$ % 10_000_000, $id;
    my $unfinished = "$spool/tmp/$name";
    my $file;
    my $whole = open($file, ">", $unfinished)
        && print($file qq({"session":"$session","launch":"$launch","token":"$token","payload":$payload}\n)) && close($file)
        && rename($unfinished, "$spool/new/$name");
    unlink $unfinished unless $whole;
    exit 0'

if [ -z "${1-}" ] && [ ! -t 0 ] && command -v perl; then
    PERL5OPT='' PERL5LIB='' exec perl -e "$IN_PERL" "$PAYLOAD_BYTES" "$WAIT_S"
fi

case ${1-} in
heartbeat) payload='{"event":"heartbeat"}' ;;
'{'*) payload=$1 ;;
*) payload=$(read_input) ;;
esac
[ "${VIGIL_SPOOL:+set}${VIGIL_LAUNCH:+set}" = setset ] || exit

[ ${#payload} -le $PAYLOAD_BYTES ] || payload='{"event":"too-large"}'
case $payload in *[![:space:]]*) ;; *) payload='{}' ;; esac

# Events of one tick of the clock are read in the order of their names, so the pid stands first, padded: it grows. The rest
# is random: a pid comes again while files wait.
read -r id </proc/sys/kernel/random/uuid || id=$(date +%s)
pid=000000$$
name=${pid#"${pid%???????}"}-$id.json
unfinished=$VIGIL_SPOOL/tmp/$name

printf '{"session":"%s","launch":"%s","token":"%s","payload":%s}\n' \
    "${VIGIL_SESSION-}" "$VIGIL_LAUNCH" "${VIGIL_TOKEN-}" "$payload" >"$unfinished" &&
    mv "$unfinished" "$VIGIL_SPOOL/new/$name" || rm -f "$unfinished"
