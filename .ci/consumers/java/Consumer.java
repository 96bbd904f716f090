import java.net.URI;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.Callable;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.ProvidersApi;
import org.openapitools.client.model.*;

/** Makes the client that OpenAPI Generator writes for Java do what every generated client is made to do. */
public class Consumer {
  static final UUID FLOW = UUID.fromString("3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01");
  static final String URIS = "https://intranet.example.com/callback";
  static ProvidersApi api;

  static OAuth2Provider oauth2(String uris, String key, Boolean validateOnly) throws ApiException {
    var body = new OAuth2ProviderRequest().name("Intranet").authorizationFlow(FLOW).redirectUris(uris);
    return api.providersOauth2Create(body, validateOnly, key, null);
  }

  static WorkspaceDirectoryProvider workspace() throws ApiException {
    var body = new WorkspaceDirectoryProviderRequest().name("Staff").delegatedSubject("admin@example.com");
    body.credentials(Map.of("key", "example")).defaultGroupEmailDomain("example.com");
    return api.providersWorkspaceDirectoryCreate(body, null, null, null);
  }

  public static void main(String[] arguments) throws Exception {
    var server = URI.create(System.getenv("PROVIDERD_SERVER"));
    var token = "Bearer " + System.getenv("PROVIDERD_TOKEN");
    var client = new ApiClient().setScheme(server.getScheme()).setHost(server.getHost()).setPort(server.getPort());
    client.setBasePath("/api/v3").setRequestInterceptor(request -> request.header("Authorization", token));
    api = new ProvidersApi(client);
    var key = UUID.randomUUID().toString();
    var steps = new LinkedHashMap<String, Callable<Object>>();
    steps.put("oauth2", () -> oauth2(URIS, null, null));
    steps.put("workspace", () -> workspace());
    steps.put("refused", () -> oauth2("javascript:alert(1)", null, null));
    steps.put("first", () -> oauth2(URIS, key, null));
    steps.put("again", () -> oauth2(URIS, key, null));
    steps.put("validated", () -> oauth2(URIS, null, true));
    var mapper = client.getObjectMapper();
    var results = new LinkedHashMap<String, Object>();
    for (var name : steps.keySet()) {
      try {
        results.put(name, steps.get(name).call());
      } catch (ApiException error) {
        var body = error.getResponseBody();
        results.put(name, body == null ? Map.of("failed", error.toString()) : mapper.readValue(body, Problem.class));
      }
    }
    System.out.println(mapper.writeValueAsString(results));
  }
}
