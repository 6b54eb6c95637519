import java.io.*;
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.resource.*;

/**
 * Grants and revokes, a line each on standard input: "grant|revoke TAB principal TAB type TAB name TAB operation". Answers "done"
 * once the broker judges by it. Usage: java -cp 'libs/*' Rights.java bootstrap
 */
public class Rights {
    public static void main(String[] args) throws Exception {
        try (var admin = Admin.create(Map.of("bootstrap.servers", (Object) args[0]))) {
            var in = new BufferedReader(new InputStreamReader(System.in));
            for (var line = in.readLine(); line != null; line = in.readLine()) {
                var field = line.split("\t");
                var resource = new ResourcePattern(ResourceType.fromString(field[2]), field[3], PatternType.LITERAL);
                var entry = new AccessControlEntry(field[1], "*", AclOperation.fromString(field[4]), AclPermissionType.ALLOW);
                var binding = new AclBinding(resource, entry);
                var wanted = field[0].equals("grant");
                if (wanted) {
                    admin.createAcls(List.of(binding)).all().get();
                } else {
                    admin.deleteAcls(List.of(binding.toFilter())).all().get();
                }
                while (admin.describeAcls(binding.toFilter()).values().get().isEmpty() == wanted) {
                    Thread.sleep(10);
                }
                System.out.println("done");
            }
        }
    }
}
