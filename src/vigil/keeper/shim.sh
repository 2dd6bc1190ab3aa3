# The shim: what stands between tmux and the agent in a pane. Two `sh` in one process group (DESIGN 2).
#
# The pane's root dies of HUP, so that the kernel hangs up the foreground group too; the recorder below it survives HUP,
# runs the agent in the foreground and writes down `$?`. `trap :` and never `trap ''`, which the agent would inherit; no
# `set -m` (a stopped agent would look dead) and no `&` (Ctrl-C would not reach it).
#
# The inner sh says its pid to the keeper and waits until the keeper holds a pidfd of it and has its birth on disk: so also an
# agent that dies at birth has a kernel status and a record. Without the keeper's word (it died, the pipe ends), or once the
# daemon has taken the order away, no agent begins (125): whoever finds that out may launch another one.
#
# Whatever the shim does once its agent is gone, it does while others tell of the death: so the recorder says nothing on the
# terminal (`Killed`, which tmux would have to draw), and adds to the file that the keeper made (one that is cut to nothing
# first is written out by the file system at once).
case $1 in
root)
    trap : INT QUIT TERM
    /bin/sh "$0" recorder "$2"
    exit $?
    ;;
recorder)
    trap : HUP INT QUIT TERM
    cd "$2" || exit 126
    exec 3>&2 2>/dev/null
    /bin/sh "$0" agent "$2"
    code=$?
    echo $code >>shim-exit
    exit $code
    ;;
agent)
    exec 2>&3 3>&-
    [ ! -d spool ] || exec /bin/sh "$0" sandboxed "$2"
    exec 4<go.fifo
    echo $$ >pid
    echo $$ >pid.fifo
    read -r _ <&4 || exit 125
    exec 4<&-
    [ -e launch.json ] || exit 125
    : >began
    . ./agent.sh
    ;;
sandboxed) # becomes bwrap; what waits for the keeper is the agent's process inside (runtimes/sandbox.py)
    cd "$2" || exit 126
    exec 4<go.fifo 5>pid.fifo 6>pid.fifo
    . ./agent.sh
    ;;
esac
