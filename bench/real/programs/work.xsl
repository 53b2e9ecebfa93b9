<?xml version="1.0"?>
<!-- Orders by customer: keys, sorting, recursion over words, numbers. -->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:output method="html" indent="yes"/>
  <xsl:key name="by-customer" match="order" use="@customer"/>

  <xsl:template match="/shop">
    <html><body>
      <xsl:for-each select="order[generate-id() = generate-id(key('by-customer', @customer)[1])]">
        <xsl:sort select="@customer" data-type="number"/>
        <h2>Customer <xsl:value-of select="@customer"/></h2>
        <p><xsl:value-of select="format-number(sum(key('by-customer', @customer)/item/@price), '#,##0.00')"/></p>
        <table>
          <xsl:apply-templates select="key('by-customer', @customer)/item">
            <xsl:sort select="@price" data-type="number" order="descending"/>
            <xsl:sort select="name"/>
          </xsl:apply-templates>
        </table>
      </xsl:for-each>
    </body></html>
  </xsl:template>

  <xsl:template match="item">
    <xsl:variable name="words">
      <xsl:call-template name="reversed"><xsl:with-param name="text" select="note"/></xsl:call-template>
    </xsl:variable>
    <tr>
      <xsl:attribute name="id"><xsl:value-of select="concat(../@number, '-', position())"/></xsl:attribute>
      <td><xsl:value-of select="translate(name, 'abcdefghij', 'ABCDEFGHIJ')"/></td>
      <td><xsl:value-of select="$words"/></td>
    </tr>
  </xsl:template>

  <xsl:template name="reversed">
    <xsl:param name="text"/>
    <xsl:if test="contains($text, ' ')">
      <xsl:call-template name="reversed">
        <xsl:with-param name="text" select="substring-after($text, ' ')"/>
      </xsl:call-template>
      <xsl:text> </xsl:text>
    </xsl:if>
    <em><xsl:value-of select="substring-before(concat($text, ' '), ' ')"/></em>
  </xsl:template>
</xsl:stylesheet>
