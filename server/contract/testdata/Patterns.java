import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;

/** Reads patterns, an empty line and texts, one per line in hexadecimal UTF-16, and prints which texts match, as 0 and 1. */
class Patterns {
  public static void main(String[] arguments) throws Exception {
    var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII)).lines().toList();
    List<Pattern> patterns = new ArrayList<>();
    for (String line : lines.subList(0, lines.indexOf(""))) patterns.add(Pattern.compile(decode(line)));
    var texts = lines.subList(lines.indexOf("") + 1, lines.size()).stream().map(Patterns::decode).toList();
    for (Pattern pattern : patterns) {
      var verdicts = new StringBuilder();
      for (String text : texts) verdicts.append(pattern.matcher(text).find() ? '1' : '0');
      System.out.println(verdicts);
    }
  }

  private static String decode(String line) {
    var text = new StringBuilder();
    for (int i = 0; i < line.length(); i += 4) text.append((char) Integer.parseInt(line.substring(i, i + 4), 16));
    return text.toString();
  }
}
