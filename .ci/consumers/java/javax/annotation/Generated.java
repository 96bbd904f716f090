package javax.annotation;

/** Marks generated code; Java has it no longer since version 11. */
public @interface Generated {
  String[] value();
}
