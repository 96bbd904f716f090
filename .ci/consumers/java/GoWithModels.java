/** The generator for Go, with the models that the version in the npm package leaves out by mistake. */
public class GoWithModels extends org.openapitools.codegen.languages.GoClientCodegen {
  public GoWithModels() {
    modelTemplateFiles.put("model.mustache", ".go");
  }
}
