import java.time.Duration;
import java.util.*;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * What a consumer sees that shares no code with the worker: Kafka's own, reading committed records.
 * Usage: java -cp 'libs/*' ReadCommitted.java bootstrap topic...
 * Prints "record TAB topic TAB partition TAB offset TAB key TAB value", key and value in base64, and for each
 * partition "end TAB topic TAB partition TAB last stable offset TAB high watermark".
 */
public class ReadCommitted {
    static KafkaConsumer<byte[], byte[]> consumer(String servers, String isolation) {
        return new KafkaConsumer<>(Map.of(
            "bootstrap.servers", servers, "isolation.level", isolation, "enable.auto.commit", "false",
            "auto.offset.reset", "none", "max.poll.records", "5000",
            "key.deserializer", ByteArrayDeserializer.class, "value.deserializer", ByteArrayDeserializer.class));
    }

    static String base64(byte[] bytes) {
        return bytes == null ? "-" : Base64.getEncoder().encodeToString(bytes);
    }

    public static void main(String[] args) {
        var out = new StringBuilder();
        try (var committed = consumer(args[0], "read_committed"); var all = consumer(args[0], "read_uncommitted")) {
            var partitions = Arrays.stream(args).skip(1).flatMap(topic -> committed.partitionsFor(topic).stream())
                .map(info -> new TopicPartition(info.topic(), info.partition())).collect(Collectors.toList());
            var high = all.endOffsets(partitions);
            var stable = committed.endOffsets(partitions);
            committed.assign(partitions);
            committed.seekToBeginning(partitions);
            while (partitions.stream().anyMatch(partition -> committed.position(partition) < stable.get(partition))) {
                for (var record : committed.poll(Duration.ofMillis(200))) {
                    out.append("record\t").append(record.topic()).append('\t').append(record.partition()).append('\t')
                        .append(record.offset()).append('\t').append(base64(record.key())).append('\t')
                        .append(base64(record.value())).append('\n');
                }
            }
            for (var partition : partitions) {
                out.append("end\t").append(partition.topic()).append('\t').append(partition.partition()).append('\t')
                    .append(stable.get(partition)).append('\t').append(high.get(partition)).append('\n');
            }
        }
        System.out.print(out);
    }
}
