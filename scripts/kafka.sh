#!/usr/bin/env bash
# Runs a real Apache Kafka (KRaft) on free loopback ports, for the tests and for trying things out. The broker comes
# from Maven Central as jars and needs Java 17 or newer; no container engine is involved.
#
#   scripts/kafka.sh up [--dir DIR] [--nodes 1|3] [--secure] [--proxied] [--parent PID]   start; prints the bootstrap servers
#   scripts/kafka.sh down [--dir DIR]                                         stop and remove
#   scripts/kafka.sh stop|kill|start NODE [--dir DIR]                         one node of a running cluster
#   scripts/kafka.sh libs                                                     fetch the jars, print their folder
#
# DIR/bootstrap holds host:port of every node. With --secure also DIR/bootstrap.sasl (TLS with SCRAM or PLAIN) and
# DIR/bootstrap.mtls (mutual TLS), the certificates in DIR/tls, and ACLs: users admin (all rights), worker and
# stranger (none until a test grants them), each with the password <user>-secret.
# With --proxied also DIR/bootstrap.proxied, where every node says that it is, and DIR/bootstrap.behind, where it is:
# a test puts something between the two.
# Exit codes: 0 ok, 69 something that is needed is not installed, 1 anything else.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'kafka: %s\n' "$@" >&2; }
die() { say "$@"; exit 1; }
missing() { say "$@"; exit 69; }

# Installs a Debian package where that takes no more than being root; elsewhere says what is missing and how to get it.
provide() {
    local what=$1 package=$2 install="apt-get install -y --no-install-recommends $2"
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        say "installing $package"
        { apt-get update -qq && $install -qq; } >&2 || missing "$what is missing and could not be installed" "run: $install"
    else
        missing "$what is missing" "run: sudo $install"
    fi
}

command=${1:-help}
[ $# = 0 ] || shift
node_wanted=
case $command in stop | kill | start) node_wanted=${1:?which node}; shift ;; esac
dir=target/kafka/dev nodes=1 secure= proxied= parent=
while [ $# -gt 0 ]; do
    case $1 in
        --dir) dir=$2; shift 2 ;;
        --nodes) nodes=$2; shift 2 ;;
        --secure) secure=1; shift ;;
        --proxied) proxied=1; shift ;;
        --parent) parent=$2; shift 2 ;;
        *) die "unknown option $1" ;;
    esac
done
root=${TOOLGATE_KAFKA_LIBS:-${CARGO_TARGET_DIR:-target}/kafka/libs}
# A broker on a laptop: small heap, and no optimising compiler, which would cost more than it gives in a test.
jvm=(-Xms64m -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.awt.headless=true
    -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -Dorg.slf4j.simpleLogger.showDateTime=true)

need_java() {
    local major
    # The tests also run a program from its source, which takes the compiler of a JDK.
    { java --list-modules 2>/dev/null | grep '^jdk.compiler' >/dev/null; } || provide "a Java with a compiler" openjdk-17-jdk-headless
    major=$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -1)
    [ "${major:-0}" -ge 17 ] || missing "Java 17 or newer is needed, found ${major:-none}"
}

# The jars, fetched once. Another process may be fetching at the same time, so the folder appears whole or not at all.
need_libs() {
    need_java
    [ ! -e "$root/complete" ] || return 0
    command -v mvn >/dev/null || provide "mvn, which fetches the broker," maven
    mkdir -p "$(dirname "$root")"
    local fresh
    fresh=$(mktemp -d "$root.XXXXXX")
    mvn -q -B -f scripts/kafka/pom.xml dependency:copy-dependencies -DoutputDirectory="$(realpath "$fresh")" \
        -DincludeScope=runtime >&2 || { rm -rf "$fresh"; missing "mvn could not fetch Apache Kafka from Maven Central"; }
    touch "$fresh/complete"
    [ -e "$root" ] || mv "$fresh" "$root" 2>/dev/null || true
    rm -rf "$fresh"
}

# A port nobody listens on. Between asking and binding another process may take it; `up` then tries other ports.
taken=" "
free_port() {
    local port
    while :; do
        # Below the range the kernel hands out to outgoing connections.
        port=$((15000 + RANDOM % 15000))
        case $taken in *" $port "*) continue ;; esac
        if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
            taken+="$port "
            found_port=$port
            return
        fi
    done
}

# One certificate authority, a server certificate for 127.0.0.1 and a client certificate for User:CN=worker.
make_certificates() {
    command -v openssl >/dev/null || provide "openssl, which makes certificates," openssl
    local tls=$dir/tls name
    mkdir -p "$tls"
    for name in ca other-ca; do
        openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=toolgate test $name" \
            -keyout "$tls/$name.key" -out "$tls/$name.pem" 2>/dev/null
    done
    printf 'subjectAltName=IP:127.0.0.1,DNS:localhost\n' >"$tls/san"
    for name in server worker; do
        openssl req -new -newkey rsa:2048 -nodes -subj "/CN=$name" -keyout "$tls/$name.key" -out "$tls/$name.csr" 2>/dev/null
        openssl x509 -req -in "$tls/$name.csr" -CA "$tls/ca.pem" -CAkey "$tls/ca.key" -CAcreateserial -days 2 \
            -extfile "$tls/san" -out "$tls/$name.pem" 2>/dev/null
    done
    cat "$tls/server.key" "$tls/server.pem" >"$tls/server-keystore.pem"
}

properties() {
    local id=$1 replicas=$2 insync=$3
    local listeners="INTERNAL://127.0.0.1:${internal[$id]}" controller="CONTROLLER://127.0.0.1:${control[$id]}"
    [ -z "$secure" ] || listeners+=",SASL://127.0.0.1:${sasl[$id]},MTLS://127.0.0.1:${mtls[$id]}"
    local advertised=$listeners
    if [ -n "$proxied" ]; then
        listeners+=",PROXIED://127.0.0.1:${behind[$id]}" advertised+=",PROXIED://127.0.0.1:${proxy[$id]}"
    fi
    cat <<EOF
process.roles=broker,controller
node.id=$id
controller.quorum.voters=$voters
listeners=$listeners,$controller
advertised.listeners=$advertised
listener.security.protocol.map=INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT,PROXIED:PLAINTEXT,SASL:SASL_SSL,MTLS:SSL
inter.broker.listener.name=INTERNAL
controller.listener.names=CONTROLLER
log.dirs=$dir/node-$id/data
auto.create.topics.enable=false
default.replication.factor=$replicas
min.insync.replicas=$insync
offsets.topic.replication.factor=$replicas
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=$replicas
transaction.state.log.min.isr=$insync
transaction.state.log.num.partitions=4
transaction.abort.timed.out.transaction.cleanup.interval.ms=1000
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
group.consumer.min.session.timeout.ms=1000
group.consumer.session.timeout.ms=6000
group.consumer.min.heartbeat.interval.ms=500
group.consumer.heartbeat.interval.ms=1000
EOF
    # Failover in seconds rather than tens of seconds, for tests that stop a node.
    [ "$replicas" = 1 ] || printf '%s\n' broker.session.timeout.ms=3000 broker.heartbeat.interval.ms=500 \
        controller.quorum.election.timeout.ms=1000 controller.quorum.fetch.timeout.ms=2000
    [ -z "$secure" ] || cat <<EOF
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS;User:admin
ssl.keystore.type=PEM
ssl.keystore.location=$dir/tls/server-keystore.pem
ssl.truststore.type=PEM
ssl.truststore.location=$dir/tls/ca.pem
listener.name.mtls.ssl.client.auth=required
listener.name.sasl.sasl.enabled.mechanisms=SCRAM-SHA-256,SCRAM-SHA-512,PLAIN
listener.name.sasl.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.sasl.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.sasl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_admin="admin-secret" user_worker="worker-secret" user_stranger="stranger-secret";
EOF
}

configure() {
    local id scram=() user mechanism
    internal=() control=() sasl=() mtls=() proxy=() behind=() voters=
    for ((id = 1; id <= nodes; id++)); do
        free_port; internal[id]=$found_port
        free_port; control[id]=$found_port
        free_port; sasl[id]=$found_port
        free_port; mtls[id]=$found_port
        free_port; proxy[id]=$found_port
        free_port; behind[id]=$found_port
        voters+="${voters:+,}$id@127.0.0.1:${control[$id]}"
    done
    join() { local IFS=,; echo "$*"; }
    join "${internal[@]/#/127.0.0.1:}" >"$dir/bootstrap"
    if [ -n "$proxied" ]; then
        join "${proxy[@]/#/127.0.0.1:}" >"$dir/bootstrap.proxied"
        join "${behind[@]/#/127.0.0.1:}" >"$dir/bootstrap.behind"
    fi
    if [ -n "$secure" ]; then
        join "${sasl[@]/#/127.0.0.1:}" >"$dir/bootstrap.sasl"
        join "${mtls[@]/#/127.0.0.1:}" >"$dir/bootstrap.mtls"
        for user in admin worker stranger; do
            for mechanism in SCRAM-SHA-256 SCRAM-SHA-512; do
                scram+=(--add-scram "$mechanism=[name=$user,password=$user-secret]")
            done
        done
    fi
    local cluster
    cluster=T$(head -c 16 /dev/urandom | base64 | tr '+/' '-_' | cut -c2-22)
    for ((id = 1; id <= nodes; id++)); do
        mkdir -p "$dir/node-$id"
        properties "$id" "$nodes" $(((nodes + 1) / 2)) >"$dir/node-$id/server.properties"
        java "${jvm[@]}" -cp "$root/*" kafka.tools.StorageTool format --cluster-id="$cluster" \
            -c "$dir/node-$id/server.properties" "${scram[@]+"${scram[@]}"}" >"$dir/node-$id/format.log" 2>&1 ||
            { cat "$dir/node-$id/format.log" >&2; die "could not format node $id"; }
    done
}

start_node() {
    local id=$1
    # A process group of its own, so that Ctrl-C in a test run does not reach the broker before its test is done.
    setsid java "${jvm[@]}" -cp "$root/*" kafka.Kafka "$dir/node-$id/server.properties" \
        >>"$dir/node-$id/server.log" 2>&1 </dev/null &
    echo $! >"$dir/node-$id/pid"
}

running() { [ -e "$dir/node-$1/pid" ] && kill -0 "$(cat "$dir/node-$1/pid")" 2>/dev/null; }

# Waits until every node accepts connections, which a KRaft broker does once it is registered and unfenced.
wait_for() {
    local id port tries
    for id in "$@"; do
        port=$(cut -d, -f"$id" "$dir/bootstrap"); port=${port##*:}
        for ((tries = 0; ; tries++)); do
            if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then break; fi
            running "$id" || return 1
            [ "$tries" -lt 900 ] || return 1
            sleep 0.1
        done
    done
}

# Ends the broker's life with the process that wanted it, also when that one is killed.
watch_parent() {
    local id
    (
        while kill -0 "$parent" 2>/dev/null && [ -d "$dir" ]; do sleep 1; done
        for ((id = 1; id <= nodes; id++)); do
            [ ! -e "$dir/node-$id/pid" ] || kill -9 "$(cat "$dir/node-$id/pid")" 2>/dev/null || true
        done
    ) </dev/null >/dev/null 2>&1 &
    disown
}

end_node() {
    local signal=$1 id=$2 pid
    running "$id" || return 0
    pid=$(cat "$dir/node-$id/pid")
    kill "-$signal" "$pid"
    while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
}

up() {
    need_libs
    [ ! -e "$dir" ] || die "$dir exists: a broker runs there, or was left there; run: scripts/kafka.sh down --dir $dir"
    mkdir -p "$dir"
    dir=$(realpath "$dir")
    [ -z "$secure" ] || make_certificates
    local try id
    for try in 1 2 3; do
        rm -rf "$dir"/node-*
        configure
        for ((id = 1; id <= nodes; id++)); do start_node "$id"; done
        if wait_for $(seq "$nodes"); then
            [ -z "$parent" ] || watch_parent
            cat "$dir/bootstrap"
            return
        fi
        say "the broker did not start (try $try), the end of its log:"
        tail -n 15 "$dir"/node-*/server.log >&2
        for ((id = 1; id <= nodes; id++)); do end_node KILL "$id"; done
    done
    die "the broker does not start; its logs are in $dir"
}

down() {
    [ -d "$dir" ] || { say "nothing runs in $dir"; return; }
    local node
    for node in "$dir"/node-*; do
        # Nothing in it is worth an orderly shutdown.
        [ ! -d "$node" ] || end_node KILL "${node##*-}"
    done
    rm -rf "$dir"
}

case $command in
    up) up ;;
    down) down ;;
    stop) end_node TERM "$node_wanted" ;;
    kill) end_node KILL "$node_wanted" ;;
    start) need_java; dir=$(realpath "$dir"); start_node "$node_wanted"; wait_for "$node_wanted" ;;
    libs) need_libs; realpath "$root" ;;
    *) sed -n '2,/^set/p' "$0" | sed -n 's/^# \{0,1\}//p'; [ "$command" = help ] || exit 1 ;;
esac
